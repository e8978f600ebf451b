import { lstatSync, type Stats } from 'node:fs';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';

/** A system error as an error about the destination; everything else unchanged. */
export function outputError(destination: string, cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  return new AppError('OUTPUT_FAILED', { path: destination, problem: problemOf(cause) }, { cause });
}

/** Runs a step whose system errors are about `destination`. */
export async function translated<T>(destination: string, step: () => Promise<T> | T): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw outputError(destination, error);
  }
}

/** What stands at a path, links not followed; null for nothing. */
export function standingAt(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

/** A folder is never replaced by a file. */
export async function refuseFolder(destination: string, realDestination: string): Promise<void> {
  const standing = await translated(destination, () => standingAt(realDestination));
  if (standing?.isDirectory()) throw new AppError('OUTPUT_IS_FOLDER', { path: destination });
}

/** A folder never replaces a file, nor a link, wherever that leads. */
export async function refuseFile(destination: string, realDestination: string): Promise<void> {
  const standing = await translated(destination, () => standingAt(realDestination));
  if (standing !== null && !standing.isDirectory()) throw new AppError('OUTPUT_IS_FILE', { path: destination });
}
