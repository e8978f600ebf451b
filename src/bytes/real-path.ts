import { realpath } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { isSystemError } from '#errors/system-problem.ts';

/**
 * Returns the absolute path with links resolved as far as it exists and can be entered; the rest is appended unchanged.
 * A destination can thus be compared with a source before anything is written.
 */
export async function nearestRealPath(path: string): Promise<string> {
  const absolute = resolve(path);
  const whole = await realPathOf(absolute);
  if (whole !== null) return whole;
  const names = absolute.split(sep).slice(1);
  // Binary search, because a path in a request may have thousands of names: below a missing folder, everything is missing.
  let real: string = sep;
  let [present, missing] = [0, names.length];
  while (missing - present > 1) {
    const middle = Math.floor((present + missing) / 2);
    const found = await realPathOf(sep + names.slice(0, middle).join(sep));
    if (found === null) missing = middle;
    else [present, real] = [middle, found];
  }
  return join(real, ...names.slice(present));
}

/** Returns the real path, or null where the path does not exist or cannot be entered. */
async function realPathOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return null;
  }
}
