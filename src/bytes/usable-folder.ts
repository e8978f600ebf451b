import { closeSync, existsSync, fsyncSync, mkdirSync, mkdtempSync, openSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';

/** A full disk may have room again: the folder is as it should be. */
const PASSING = new Set(['ENOSPC', 'EDQUOT']);

/** What these codes mean where a folder is made. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EEXIST: 'what is there is no folder',
  ENOENT: 'a link on the way leads nowhere, or no folder can be made there',
};

/**
 * Makes a folder where it is missing, durably and with those above it, and tries whether something can be made in it. Returns why
 * not, as the end of a sentence; null where all is well.
 */
export function problemOfFolder(folder: string, mode: number): string | null {
  try {
    makeFolders(folder, mode);
    rmdirSync(mkdtempSync(join(folder, '.attestream-')));
    return null;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    if (PASSING.has(code)) return null;
    return PROBLEMS[code] ?? problemOf(error);
  }
}

/** As `mkdir -p`. Node's own goes on for ever where a folder cannot be made although the one above is there, as in /proc. */
function makeFolders(folder: string, mode: number): void {
  if (makeFolder(folder, mode)) return;
  makeFolders(dirname(folder), mode);
  if (!makeFolder(folder, mode)) mkdirSync(folder, { mode });
}

/** What is in a folder outlives a power cut only where its own name does. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** False where the one above is missing. */
function makeFolder(folder: string, mode: number): boolean {
  try {
    mkdirSync(folder, { mode });
    syncFolder(dirname(folder));
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EEXIST' && statSync(folder).isDirectory()) return true;
    if (code === 'ENOENT' && !existsSync(dirname(folder)) && dirname(folder) !== folder) return false;
    throw error;
  }
}
