import type { ByteSource, StoredObject } from '#bytes/byte-source.ts';
import { type PrefetchBudget, ReadAhead } from '#bytes/read-ahead.ts';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { admittedS3Object, decodedS3Address, type S3Address, type S3Object } from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { type OpenedS3Object, S3Reader } from '#s3/s3-reader.ts';
import { inputName, nameOfUrl } from '../input-name.ts';
import type { FileOpener } from '../input-resolver.ts';

/** The keys of `input_resolvers.s3`. */
export type S3InputSettings = NonNullable<Config['input_resolvers']['s3']>;

/** The first bytes of an object come with the answer that says whether it is there: they tell the format. */
const HEAD_BYTES = 1024 * 1024;

/** The opener of `remote_file_url` with the scheme `s3://`. */
export function s3FileOpener(settings: S3InputSettings): FileOpener<'remote_file_url'> {
  return ({ url, filename_hint: hint }, inputIndex, { signal }) =>
    openS3File(url, inputName([hint, nameOfUrl(url)], inputIndex), settings, signal);
}

/** Opens an object for random reads. `name` is what the source will be called. */
export async function openS3File(
  url: string,
  name: string,
  settings: S3InputSettings,
  signal: AbortSignal,
): Promise<ByteSource> {
  signal.throwIfAborted();
  const address = admittedS3Object(url, settings);
  const reader = new S3Reader(await connectS3(settings));
  const { object, ...known } = await openAsWritten(reader, address, signal);
  if (object.sizeBytes === 0) throw new AppError('SOURCE_EMPTY', { path: url });
  return new S3Source(reader, object, name, known);
}

/** Keys are taken as they are written; where there is no such object, callers who encode them are understood too. */
async function openAsWritten(reader: S3Reader, address: S3Address, signal: AbortSignal): Promise<OpenedS3Object> {
  try {
    return await reader.open(address, HEAD_BYTES, signal);
  } catch (error) {
    const decoded = decodedS3Address(address);
    if (decoded === null || !mayBeMissing(error)) throw error;
    return await reader.open(decoded, HEAD_BYTES, signal).catch(() => {
      throw error;
    });
  }
}

/** S3 does not tell callers without the right to list a bucket that an object is missing. */
function mayBeMissing(error: unknown): boolean {
  return error instanceof AppError && (error.reason === 'S3_OBJECT_MISSING' || error.reason === 'S3_ACCESS_DENIED');
}

/**
 * An object of S3. Every read asks for the ETag that the object was found with, so that it is read as it was or not at
 * all, and there is nothing to be checked at the end.
 */
export class S3Source implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly storedAt: StoredObject;
  readonly claimedMediaType?: string;
  readonly #readAhead: ReadAhead;

  constructor(
    reader: S3Reader,
    object: S3Object,
    name: string,
    known: { readonly head?: Buffer; readonly mediaType?: string; readonly memory?: PrefetchBudget } = {},
  ) {
    const { bucket, key, etag, sizeBytes } = object;
    this.name = name;
    this.sizeBytes = sizeBytes;
    this.storedAt = { store: reader.store, bucket, key, etag };
    if (known.mediaType !== undefined) this.claimedMediaType = known.mediaType;
    this.#readAhead = new ReadAhead({
      name,
      sizeBytes,
      fetch: (offset, length, signal) => reader.range(object, offset, length, signal),
      ...(known.head !== undefined && { head: known.head }),
      ...(known.memory !== undefined && { memory: known.memory }),
    });
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    await this.#readAhead.read(target, offset, signal);
  }

  close(): Promise<void> {
    this.#readAhead.close();
    return Promise.resolve();
  }
}
