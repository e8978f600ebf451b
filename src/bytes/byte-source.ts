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

/** Bytes of a piece. */
const PIECE_BYTES = 1024 * 1024;

/** Reads `[start, end)` piece by piece, so that one is in memory at a time. */
export async function* readPieces(
  source: ByteSource,
  start: number,
  end: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  for (let at = start; at < end; at += PIECE_BYTES) {
    yield await readRange(source, at, Math.min(PIECE_BYTES, end - at), signal);
  }
}

/** Returns bytes in memory as a source. */
export function memorySource(name: string, bytes: Buffer): ByteSource {
  return {
    name,
    sizeBytes: bytes.length,
    async read(target, offset, signal) {
      signal.throwIfAborted();
      if (offset + target.length > bytes.length) throw new RangeError(`${name} ends before ${offset + target.length}`);
      target.set(bytes.subarray(offset, offset + target.length));
    },
    close: () => Promise.resolve(),
  };
}

/** Source on this host, which the SDK can read, too. */
export interface LocalSource extends ByteSource {
  readonly localPath: string;
}

/** Returns the path by which this process, with the SDK in it, reads the very file that was opened. */
export function openedPathOf({ openedPath, localPath }: LocalSource): string {
  return openedPath ?? localPath;
}

/** Bytes that one read of headers fetches: a chain of small chunks or frames costs one request, not one each. */
const WINDOW_SIZE_BYTES = 16 * 1024;

/**
 * Reader of headers through a sliding window of bytes. Small forward steps are cheap, also where every read of the
 * source is a network request. `maxSizeBytes` is the window's size while it slides; after a jump, such as over media,
 * it starts small.
 */
export class ReadWindow {
  readonly #source: ByteSource;
  readonly #signal: AbortSignal;
  readonly #maxSizeBytes: number;
  #bytes: Buffer = Buffer.alloc(0);
  #offset = 0;

  constructor(source: ByteSource, signal: AbortSignal, maxSizeBytes = WINDOW_SIZE_BYTES) {
    this.#source = source;
    this.#signal = signal;
    this.#maxSizeBytes = maxSizeBytes;
  }

  /**
   * Reads the bytes `[offset, offset + length)`, which must lie inside the source. They are valid until the next call.
   */
  async read(offset: number, length: number): Promise<Buffer> {
    const buffered = this.buffered(offset, length);
    if (buffered !== null) return buffered;
    await this.#slideTo(offset, length);
    return this.#bytes.subarray(0, length);
  }

  /** Returns those bytes if they are in the window, else null: avoids an `await` for each element of a long chain. */
  buffered(offset: number, length: number): Buffer | null {
    const start = offset - this.#offset;
    return start >= 0 && start + length <= this.#bytes.length ? this.#bytes.subarray(start, start + length) : null;
  }

  async #slideTo(offset: number, length: number): Promise<void> {
    const end = this.#offset + this.#bytes.length;
    const isNear = offset >= this.#offset && offset <= end + this.#maxSizeBytes;
    const ahead = isNear ? this.#maxSizeBytes : WINDOW_SIZE_BYTES;
    const available = this.#source.sizeBytes - offset;
    this.#bytes = await readRange(this.#source, offset, Math.max(length, Math.min(ahead, available)), this.#signal);
    this.#offset = offset;
  }
}
