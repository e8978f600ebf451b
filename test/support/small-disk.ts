import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, open, rm, statfs, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { REMOVAL } from './temporary-folder.ts';

/** The largest shared memory file system that a test fills up, in bytes. Containers have 64 MiB. */
const MAX_FILLED_BYTES = 256 * 1024 * 1024;
const LOOK_INTERVAL_MS = 50;

export interface SmallDisk {
  /** An empty folder on a file system with `freeBytes` left, give or take what folders and files need. */
  readonly path: string;
  cleanUp(): Promise<void>;
}

/**
 * A real file system with little room: a tmpfs of its own where this process may mount one, else the small tmpfs that
 * containers have, filled up. Throws where there is neither, because a test that is skipped tells nothing.
 */
export async function openSmallDisk(freeBytes: number): Promise<SmallDisk> {
  const path = await mkdtemp(join(tmpdir(), 'attestream-small-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${freeBytes},mode=1777`, 'tmpfs', path], { stdio: 'pipe' });
  } catch (cause) {
    await rm(path, { recursive: true });
    return await fillSharedMemory(freeBytes, cause);
  }
  return {
    path,
    cleanUp: async () => {
      execFileSync('umount', ['--lazy', path]); // A failed test may still hold a file open on it.
      await rm(path, REMOVAL);
    },
  };
}

async function fillSharedMemory(freeBytes: number, cause: unknown): Promise<SmallDisk> {
  const lock = await lockSharedMemory();
  const { bavail, bsize } = await statfs('/dev/shm');
  const fillBytes = bavail * bsize - freeBytes;
  if (fillBytes < 0 || fillBytes > MAX_FILLED_BYTES) {
    lock.close();
    throw new Error('This test needs a small file system: run it as root, or in a container with a small /dev/shm.', {
      cause,
    });
  }
  const path = await mkdtemp('/dev/shm/attestream-small-disk-');
  const filler = await mkdtemp('/dev/shm/attestream-filler-');
  await writeFile(join(filler, 'filler'), Buffer.alloc(fillBytes, 1));
  return {
    path,
    cleanUp: async () => {
      await rm(path, REMOVAL);
      await rm(filler, REMOVAL);
      lock.close();
    },
  };
}

/** Waits until no other test fills the shared memory, and keeps others from it until the server is closed. */
async function lockSharedMemory(): Promise<Server> {
  for (;;) {
    try {
      // An abstract socket (unix(7)) is free again when its process exits, whatever ended it.
      const lock = createServer().unref().listen('\0attestream-shared-memory');
      await once(lock, 'listening');
      return lock;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
      await sleep(LOOK_INTERVAL_MS);
    }
  }
}

/** Fills the file system of a folder to its last byte, with a file that can be truncated to make room again. */
export async function fillDisk(folder: string): Promise<string> {
  const path = join(folder, 'filler');
  const file = await open(path, 'w');
  try {
    for (const bytes of [65_536, 4096, 1]) for (;;) await file.write(Buffer.alloc(bytes));
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
  } finally {
    await file.close();
  }
  return path;
}
