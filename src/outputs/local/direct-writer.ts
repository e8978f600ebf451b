import { constants, statfsSync, write } from 'node:fs';
import { promisify } from 'node:util';
import { isPageMemory, offsetInPage } from '#bytes/buffers.ts';
import { Descriptor } from '#bytes/file-source.ts';
import { systemErrorCode } from '#errors/system-problem.ts';

/** Smaller writes go through the page cache: they are not worth a wait for the disk. */
const SMALLEST_DIRECT_WRITE_BYTES = 64 * 1024;

/**
 * The largest page that the page cache may have: what is written directly ends where such pages do, so that no page is
 * written both ways. Kernels for x64 have one size, those for other processors are built with up to 64 KiB.
 */
const CACHE_PAGE_BYTES = process.arch === 'x64' ? 4096 : 65_536;

/**
 * File systems of this host's own disks (statfs(2)): ext2 to ext4, XFS and btrfs. Over a network, a server would be asked
 * to make every write durable by itself.
 */
const DIRECT_FILE_SYSTEMS = [0xef53, 0x58465342, 0x9123683e];

/** Error codes of file systems that refuse direct writes. */
const REFUSALS = ['EINVAL', 'EOPNOTSUPP'];

const writeInBackground = promisify(write);

/** The range `[start, end)` of the given bytes that was written. */
export interface WrittenRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Writes to a file around the page cache (O_DIRECT), where memory and file system allow it. A film then takes no memory of
 * the host but the buffers it passes through, evicts nothing from the cache, and does not wait for memory that the host of a
 * virtual machine gives slowly. Measured: signing a film of 6 GB takes 5.1 s, and 15.6 s through the cache.
 */
export class DirectWriter {
  readonly #file: Descriptor;
  /** Opened at the first direct write; null when the file system refuses. */
  #direct: Descriptor | null | undefined;

  /** `file` stays the caller's, and open until this is closed. */
  constructor(file: Descriptor) {
    this.#file = file;
  }

  /**
   * Writes as many whole pages of `bytes` as can be, and returns which bytes those were; an empty range where there are
   * none. Throws the system's errors as they are.
   */
  async write(bytes: Uint8Array, position: number): Promise<WrittenRange> {
    const { start, end } = wholePagesOf(bytes, position);
    if (end - start < SMALLEST_DIRECT_WRITE_BYTES) return NOTHING;
    if (this.#direct === undefined) this.#direct = openDirectly(this.#file);
    if (this.#direct === null) return NOTHING;
    try {
      const writing = this.#direct.use((file) => writeInBackground(file, bytes, start, end - start, position + start));
      return { start, end: start + (await writing).bytesWritten };
    } catch (error) {
      if (!REFUSALS.includes(systemErrorCode(error) ?? '')) throw error;
      return NOTHING;
    }
  }

  /** Safe to call again. */
  async close(): Promise<void> {
    await this.#direct?.close();
  }
}

const NOTHING: WrittenRange = { start: 0, end: 0 };

/** Returns the bytes that fill whole pages of the file and lie on pages of memory in the same way. */
function wholePagesOf(bytes: Uint8Array, position: number): WrittenRange {
  if (!isPageMemory(bytes) || offsetInPage(bytes.byteOffset) !== offsetInPage(position)) return NOTHING;
  const end = position + bytes.length;
  const firstPage = Math.ceil(position / CACHE_PAGE_BYTES) * CACHE_PAGE_BYTES;
  const lastPage = end - (end % CACHE_PAGE_BYTES);
  return firstPage < lastPage ? { start: firstPage - position, end: lastPage - position } : NOTHING;
}

/** Opens the same file once more; null where that cannot be done, and the page cache has to do. */
function openDirectly(file: Descriptor): Descriptor | null {
  const path = `/proc/self/fd/${file.number}`;
  try {
    if (constants.O_DIRECT === undefined || !DIRECT_FILE_SYSTEMS.includes(statfsSync(path).type)) return null;
    return Descriptor.open(path, constants.O_WRONLY | constants.O_DIRECT);
  } catch (error) {
    if (systemErrorCode(error) === undefined) throw error;
    return null;
  }
}
