/** An object in a store that can copy ranges of it by itself. */
export interface StoredObject {
  /** What it was read over: the same value for whatever the same server keeps. */
  readonly store: object;
  readonly bucket: string;
  readonly key: string;
  /** It changes with every change of the object's bytes. */
  readonly etag: string;
}

/**
 * An input as bytes that can be read at random: a local file, an HTTP resource with ranges, an S3 object.
 *
 * Obligations of every implementation (test/bytes/byte-source-contract.ts runs them):
 * - the size is fixed when the source is opened; a source that turns out shorter, longer or changed is an error;
 * - reads may run side by side and may repeat;
 * - an aborted signal rejects with the signal's reason in bounded time;
 * - errors are AppErrors that name the source and the offset.
 */
export interface ByteSource {
  /** The name shown to people and used for output names: one safe path segment, never a URL or a path. */
  readonly name: string;
  readonly sizeBytes: number;
  /** The media type that the place it came from claims, if any; the bytes decide. */
  readonly claimedMediaType?: string;
  /** A path on this host that holds exactly these bytes, where there is one: the SDK reads files only. */
  readonly localPath?: string;
  /** Leads this process, and no other, to the open file itself, whatever lies at `localPath` by now. */
  readonly openedPath?: string;
  /** The object that holds exactly these bytes, where an object store has them. */
  readonly storedAt?: StoredObject;
  /** Fills the whole of `target` from `offset` on. Reading past the end is an error, never a short read. */
  read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void>;
  /** Rejects where the source is no longer what was opened. Absent where it cannot change. */
  checkUnchanged?(signal: AbortSignal): Promise<void>;
  /**
   * Makes `checkUnchanged` see every change from now on, by whatever means it is made. Resolves to false where the file
   * system cannot promise that. Absent where the source cannot change.
   */
  pin?(signal: AbortSignal): Promise<boolean>;
  /** Releases what is held open. Safe to call again. */
  close(): Promise<void>;
}

/** Reads `[offset, offset + length)` into a buffer of its own. For headers and tables, never for media. */
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
