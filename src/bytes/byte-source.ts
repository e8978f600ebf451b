/** Object in a store that can copy ranges of it on the server. */
export interface StoredObject {
  /** Identity of the store: the same value for all objects of one server. */
  readonly store: object;
  readonly bucket: string;
  readonly key: string;
  /** Changes with every change of the object's bytes. */
  readonly etag: string;
}

/**
 * Input as bytes with random access: a local file, an HTTP resource with ranges, an S3 object.
 *
 * Obligations of every implementation, which `test/bytes/byte-source-contract.ts` checks:
 * - the size is fixed when the source is opened; a source that turns out shorter, longer or changed is an error;
 * - reads may run concurrently and may repeat;
 * - an aborted signal rejects with the signal's reason in bounded time;
 * - errors are AppErrors that name the source and the offset.
 */
export interface ByteSource {
  /** Name in messages and for output names: one safe path segment, never a URL or a path. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Media type that the server stated, if any; the bytes decide. */
  readonly claimedMediaType?: string;
  /** Path on this host with exactly these bytes, where there is one: the SDK reads files only. */
  readonly localPath?: string;
  /** Path to the open file itself, for this process only, whatever `localPath` leads to now. */
  readonly openedPath?: string;
  /** Stored object with exactly these bytes, where there is one. */
  readonly storedAt?: StoredObject;
  /** Fills `target` completely from `offset`. Throws past the end, and never reads short. */
  read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void>;
  /** Throws `SOURCE_CHANGED` where the source is no longer the one that was opened. Absent where it cannot change. */
  checkUnchanged?(signal: AbortSignal): Promise<void>;
  /**
   * Makes `checkUnchanged` detect every later change, by whatever means it is made. Resolves to false where the file
   * system cannot guarantee that. Absent where the source cannot change.
   */
  pin?(signal: AbortSignal): Promise<boolean>;
  /** Releases files and connections. Safe to call again. */
  close(): Promise<void>;
}

/** Reads `[offset, offset + length)` into a new buffer: for headers and tables, never for media. */
export async function readRange(
  source: ByteSource,
  offset: number,
  length: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const target = Buffer.allocUnsafe(length);
  await source.read(target, offset, signal);
  return target;
}

/** Source on this host, which the SDK can read, too. */
export interface LocalSource extends ByteSource {
  readonly localPath: string;
}
