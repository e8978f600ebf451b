import type { ByteSource, StoredObject } from '#bytes/byte-source.ts';
import { type HeldBytes, ReadAhead } from '#bytes/read-ahead.ts';
import type { S3Object, S3Reader } from '#s3/s3-reader.ts';

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
    known: { readonly head?: Buffer; readonly mediaType?: string; readonly memory?: HeldBytes } = {},
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
