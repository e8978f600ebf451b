import { execFileSync } from 'node:child_process';
import { statfsSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** File systems that the tests know to be written directly: ext2 to ext4, XFS and btrfs (statfs(2)). */
const DIRECT = [0xef53, 0x58465342, 0x9123683e];

/**
 * A fresh folder on a file system that is written directly: where temporary files go, or else beside the project. Throws
 * where neither is one, because a test that is skipped tells nothing.
 */
export async function makeDirectFolder(): Promise<string> {
  const place = [tmpdir(), process.cwd()].find((path) => DIRECT.includes(statfsSync(path).type));
  if (place === undefined) throw new Error('This test needs a folder on ext4, XFS or btrfs: set TMPDIR to one.');
  return await mkdtemp(join(place, '.attestream-direct-'));
}

/** Returns the size of the part of a file that is in the page cache, in bytes. */
export function cachedBytes(path: string): number {
  return Number(execFileSync('fincore', ['--bytes', '--noheadings', '--output', 'RES', path], { encoding: 'utf8' }));
}
