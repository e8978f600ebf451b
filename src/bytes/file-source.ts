import { type BigIntStats, constants, fstatSync, read, readSync, statSync } from 'node:fs';
import { promisify } from 'node:util';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import type { ByteSource } from './byte-source.ts';
import { Descriptor } from './descriptor.ts';

/**
 * A read of at most so many bytes is made at once, on the thread that asks: files are read in workers, where nobody else
 * waits for the thread, and a trip through the pool of threads costs more than so small a read.
 */
const READ_AT_ONCE_BYTES = 256 * 1024;

const readBehind = promisify(read);

/** A regular file that is held open, so that it is the same file from the first read to the last. */
export class FileSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly localPath: string;
  readonly #file: Descriptor;
  readonly #opened: BigIntStats;

  constructor(file: Descriptor, name: string, localPath: string, opened: BigIntStats) {
    if (opened.size > BigInt(Number.MAX_SAFE_INTEGER)) {
      throw new AppError('SOURCE_OPEN_FAILED', { path: localPath, problem: 'it is larger than 8 PiB' });
    }
    this.#file = file;
    this.name = name;
    this.localPath = localPath;
    this.sizeBytes = Number(opened.size);
    this.#opened = opened;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    const { name, sizeBytes } = this;
    for (let filled = 0; filled < target.length; ) {
      signal.throwIfAborted();
      const count = await this.#readSome(target, filled, offset + filled);
      if (count === 0) throw new AppError('SOURCE_ENDED_EARLY', { name, offset: offset + filled, sizeBytes });
      filled += count;
    }
  }

  /** Compares size, time of change and, where the path still leads to a file, which file it is. */
  async checkUnchanged(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const now = fstatSync(this.#file.number, { bigint: true });
    const atPath = statsAt(this.localPath);
    const replaced = atPath !== null && (atPath.ino !== now.ino || atPath.dev !== now.dev);
    if (replaced || now.size !== this.#opened.size || now.mtimeNs !== this.#opened.mtimeNs) {
      throw new AppError('SOURCE_CHANGED', { name: this.name });
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #readSome(target: Uint8Array, filled: number, position: number): Promise<number> {
    try {
      const length = target.length - filled;
      if (length <= READ_AT_ONCE_BYTES) return readSync(this.#file.number, target, filled, length, position);
      const { bytesRead } = await this.#file.use((file) => readBehind(file, target, filled, length, position));
      return bytesRead;
    } catch (cause) {
      if (!isSystemError(cause)) throw cause;
      throw new AppError(
        'SOURCE_READ_FAILED',
        { name: this.name, offset: position, problem: problemOf(cause) },
        { cause },
      );
    }
  }
}

/** A file that was moved away or removed while it was open is still read whole, so this is no change. */
function statsAt(path: string): BigIntStats | null {
  try {
    return statSync(path, { bigint: true });
  } catch (error) {
    if (isSystemError(error)) return null;
    throw error;
  }
}

/** Opens a file that this service wrote itself; what others wrote is opened with the care that inputs need. */
export async function openOwnFile(path: string, name: string): Promise<FileSource> {
  const file = Descriptor.open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    return new FileSource(file, name, path, fstatSync(file.number, { bigint: true }));
  } catch (error) {
    await file.close();
    throw error;
  }
}
