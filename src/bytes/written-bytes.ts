import { readdirSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';

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
