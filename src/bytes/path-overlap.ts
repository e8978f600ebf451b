import { realpath } from 'node:fs/promises';
import { join, resolve, sep } from 'node:path';
import { isSystemError } from '#errors/system-problem.ts';

/** Tells whether `path` is `folder` or lies inside it. Both are absolute, normalised and have their links resolved. */
export function isSameOrInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(inside(folder));
}

/** Tells whether one of two paths is the other or lies inside it. */
export function doOverlap(one: string, other: string): boolean {
  return isSameOrInside(one, other) || isSameOrInside(other, one);
}

/** Returns the folder of a relative path; the empty path for a file of the root. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('/'), 0));
}

/** Lists the folders that a path lies in, the nearest first: `/a/b/c` lies in `/a/b`, `/a` and `/`, `a/b/c` in `a/b` and `a`. */
export function* foldersAbove(path: string): Generator<string> {
  for (let end = path.lastIndexOf('/'); end > 0; end = path.lastIndexOf('/', end - 1)) yield path.slice(0, end);
  if (path.startsWith('/') && path !== '/') yield '/';
}

/**
 * Absolute paths (or addresses), each with its owner. Finds those that overlap a path in time proportional to the
 * path's depth, however many paths there are.
 */
export class PathSet<Owner> {
  readonly #owners = new Map<string, Owner>();
  /** For every folder with paths inside it, the number of its entries that are such a folder, or one of the paths. */
  readonly #entryCounts = new Map<string, number>();

  /** Adds a path. One that is there already goes to the new owner. */
  add(path: string, owner: Owner): void {
    const isNewEntry = !this.#isEntry(path);
    this.#owners.set(path, owner);
    if (!isNewEntry) return;
    for (const folder of foldersAbove(path)) {
      const isNewFolder = !this.#isEntry(folder);
      this.#entryCounts.set(folder, (this.#entryCounts.get(folder) ?? 0) + 1);
      if (!isNewFolder) return;
    }
  }

  delete(path: string): void {
    if (!this.#owners.delete(path) || this.#entryCounts.has(path)) return;
    for (const folder of foldersAbove(path)) {
      const count = (this.#entryCounts.get(folder) ?? 0) - 1;
      if (count > 0) this.#entryCounts.set(folder, count);
      else this.#entryCounts.delete(folder);
      if (this.#isEntry(folder)) return;
    }
  }

  /** Yields the owners of the paths that `path` is, holds or lies inside. */
  *overlapping(path: string): Generator<Owner> {
    yield* this.#ownerAt(path);
    for (const folder of foldersAbove(path)) yield* this.#ownerAt(folder);
    // All paths are searched only when some are known to lie inside.
    if (!this.#entryCounts.has(path)) return;
    const start = inside(path);
    for (const [other, owner] of this.#owners) if (other !== path && other.startsWith(start)) yield owner;
  }

  *#ownerAt(path: string): Generator<Owner> {
    const owner = this.#owners.get(path);
    if (owner !== undefined) yield owner;
  }

  #isEntry(path: string): boolean {
    return this.#owners.has(path) || this.#entryCounts.has(path);
  }
}

/** Returns what all paths inside a folder start with. */
function inside(folder: string): string {
  return folder.endsWith('/') ? folder : `${folder}/`;
}

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
