import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, mkdirSync, opendirSync, openSync, statSync, unlinkSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { problemOf } from '#errors/system-problem.ts';
import { serveParent, tellParent } from '#processes/parent.ts';
import type { FolderAnswer, FolderProbe } from '../folder-probe.ts';

// A process behind `FolderProbes`: uses one folder, each time that it is asked.

serveParent((probe: FolderProbe) => tellParent({ answer: { problem: problemIn(probe) } satisfies FolderAnswer }));

/** Bytes of the file that is written: as many as outputs leave free beside them. */
const FILE_BYTES = 1024 * 1024;

function problemIn({ folder, write, wasMounted }: FolderProbe): string | null {
  try {
    if (wasMounted && !isMountPoint(folder)) return 'the file system that was mounted there is not mounted any more';
    if (write) writeAndDelete(folder);
    else readFirstEntry(folder);
    return null;
  } catch (error) {
    return problemOf(error);
  }
}

function isMountPoint(folder: string): boolean {
  return statSync(folder).dev !== statSync(dirname(folder)).dev;
}

/** Lists no more of the folder: it may have 100,000 entries. */
function readFirstEntry(folder: string): void {
  const entries = opendirSync(folder);
  try {
    entries.readSync();
  } finally {
    entries.closeSync();
  }
}

/**
 * Makes the folder where it is missing, as whoever writes into it does. The file loses its name before it is written, so that none is
 * left where this process is killed.
 */
function writeAndDelete(folder: string): void {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `.attestream-probe-${randomUUID()}`);
  const file = openSync(path, 'wx', 0o600);
  try {
    unlinkSync(path);
    writeSync(file, Buffer.alloc(FILE_BYTES));
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
