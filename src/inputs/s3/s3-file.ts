import type { ByteSource } from '#bytes/byte-source.ts';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { admittedS3Object, decodedS3Address, type S3Address } from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { type OpenedS3Object, S3Reader } from '#s3/s3-reader.ts';
import { inputName, nameOfUrl } from '../input-name.ts';
import type { FileOpener } from '../input-resolver.ts';
import { S3Source } from './s3-source.ts';

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

/** Who may not list a bucket is not told that an object is missing. */
function mayBeMissing(error: unknown): boolean {
  return error instanceof AppError && (error.reason === 'S3_OBJECT_MISSING' || error.reason === 'S3_ACCESS_DENIED');
}
