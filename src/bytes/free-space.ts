import { readdirSync, type Stats, statfsSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';
import type { DiskSpace } from '#telemetry/metrics.ts';

const LOOK_INTERVAL_MS = 10_000;

/** The age from which a space is not known any more, in milliseconds: a network file system may hang. */
const MAX_AGE_MS = 60_000;

interface Look {
  running: Promise<void> | null;
  space: DiskSpace | null;
  atMs: number;
}

/**
 * The free space of folders, read in an interval and never by those who ask. A look that hangs holds a thread of this process, so
 * each folder has at most one.
 */
export class FreeSpace {
  readonly #looks = new Map<string, Look>();
  readonly #folders: Readonly<Record<string, string>>;
  readonly #read: typeof statfs;

  /** Takes the paths of folders by their names. */
  constructor(folders: Readonly<Record<string, string>>, read: typeof statfs = statfs) {
    this.#folders = folders;
    this.#read = read;
    setInterval(() => void this.look(), LOOK_INTERVAL_MS).unref();
    void this.look();
  }

  /** Returns the space by the names of the folders; null where it could not be read within the last minute. */
  now(): Readonly<Record<string, DiskSpace | null>> {
    return Object.fromEntries(
      Object.keys(this.#folders).map((name) => {
        const { space = null, atMs = 0 } = this.#looks.get(name) ?? {};
        return [name, performance.now() - atMs > MAX_AGE_MS ? null : space];
      }),
    );
  }

  /** Reads the space of all folders; where one is being read, waits for that. Never rejects. */
  async look(): Promise<void> {
    await Promise.all(Object.entries(this.#folders).map(([name, path]) => this.#lookAt(name, path)));
  }

  #lookAt(name: string, path: string): Promise<void> {
    const look = this.#looks.get(name) ?? { running: null, space: null, atMs: 0 };
    this.#looks.set(name, look);
    look.running ??= this.#read(path)
      .then(asDiskSpace, () => null)
      .then((space) => {
        Object.assign(look, { running: null, space, atMs: performance.now() });
      });
    return look.running;
  }
}

/** Returns the space of a file system now; null where it is not known: some network file systems report no blocks. */
export function spaceOf(path: string): DiskSpace | null {
  const space = asDiskSpace(statfsSync(path));
  return space.sizeBytes === 0 ? null : space;
}

function asDiskSpace({ bavail, blocks, bsize }: { bavail: number; blocks: number; bsize: number }): DiskSpace {
  return { freeBytes: bavail * bsize, sizeBytes: blocks * bsize };
}

/** Unit of `statSync().blocks`, whatever the block size of the file system is (POSIX). */
const STAT_BLOCK_BYTES = 512;

/** Returns the bytes of a file or folder that are on the disk already, and so no longer free. */
export function writtenBytes(path: string): number {
  const stats = statOf(path);
  const inside = stats?.isDirectory() === true ? namesIn(path) : [];
  return inside.reduce((sum, name) => sum + bytesOf(statOf(join(path, name))), bytesOf(stats));
}

function statOf(path: string): Stats | undefined {
  return statSync(path, { throwIfNoEntry: false });
}

/** Returns the paths in a folder; none where another process has removed it. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' });
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function bytesOf(stats: Stats | undefined): number {
  return (stats?.blocks ?? 0) * STAT_BLOCK_BYTES;
}
