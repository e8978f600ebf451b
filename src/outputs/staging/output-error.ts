import { lstatSync, type Stats } from 'node:fs';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';

/** Translates a system error into an error about the destination. Returns any other error unchanged. */
export function outputError(destination: string, cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  return new AppError('OUTPUT_FAILED', { path: destination, problem: problemOf(cause) }, { cause });
}

/** Runs a step whose system errors are about `destination`. */
export async function withOutputErrors<T>(destination: string, step: () => Promise<T> | T): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw outputError(destination, error);
  }
}

/** Returns the entry at a path, without following links; null for none. */
export function entryAt(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

/** Throws `OUTPUT_IS_FOLDER` when a folder exists at the destination of a file. */
export async function refuseFolder(destination: string, realDestination: string): Promise<void> {
  const existing = await withOutputErrors(destination, () => entryAt(realDestination));
  if (existing?.isDirectory()) throw new AppError('OUTPUT_IS_FOLDER', { path: destination });
}

/** Throws `OUTPUT_IS_FILE` when a file or link exists at the destination of a folder. */
export async function refuseFile(destination: string, realDestination: string): Promise<void> {
  const existing = await withOutputErrors(destination, () => entryAt(realDestination));
  if (existing !== null && !existing.isDirectory()) throw new AppError('OUTPUT_IS_FILE', { path: destination });
}
