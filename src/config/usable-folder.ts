import { closeSync, existsSync, fsyncSync, mkdirSync, mkdtempSync, openSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';

/** Transient errors: a full disk may have space again. */
const TRANSIENT = new Set(['ENOSPC', 'EDQUOT']);

/** Meanings of error codes of `mkdir`, as the end of a sentence. */
const PROBLEMS: Readonly<Record<string, string>> = {
  EEXIST: 'it exists and is not a folder',
  ENOENT: 'a link in the path leads nowhere, or no folder can be made there',
};

/**
 * Makes a folder durably where it is missing, with its parents, and checks that it is writable. Returns the problem, as
 * the end of a sentence, or null.
 */
export function problemOfFolder(folder: string, mode: number): string | null {
  try {
    makeFolders(folder, mode);
    rmdirSync(mkdtempSync(join(folder, '.attestream-')));
    return null;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === undefined) throw error;
    if (TRANSIENT.has(code)) return null;
    return PROBLEMS[code] ?? problemOf(error);
  }
}

/**
 * Does the same as `mkdir -p`. Node's recursive mkdir loops for ever where a folder cannot be made in an existing
 * parent, as in /proc.
 */
function makeFolders(folder: string, mode: number): void {
  if (makeFolder(folder, mode)) return;
  makeFolders(dirname(folder), mode);
  if (!makeFolder(folder, mode)) mkdirSync(folder, { mode });
}

/** Makes the entries of a folder durable. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes one folder. Returns false where its parent is missing. */
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
