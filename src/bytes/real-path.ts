import { realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { isSystemError } from '#errors/system-problem.ts';

/** Whether `path` is `place` or lies inside it. Both absolute, normalised and with links resolved. */
export function isSameOrInside(path: string, place: string): boolean {
  return path === place || path.startsWith(place.endsWith(sep) ? place : place + sep);
}

/**
 * The absolute path with links resolved as far as it exists and can be entered; the rest is appended as it is. So a
 * destination can be compared with a source before anything is written.
 */
export async function nearestRealPath(path: string): Promise<string> {
  const missing: string[] = [];
  for (let existing = resolve(path); ; existing = dirname(existing)) {
    try {
      return join(await realpath(existing), ...missing);
    } catch (error) {
      if (!isSystemError(error) || existing === dirname(existing)) throw error;
      missing.unshift(basename(existing));
    }
  }
}
