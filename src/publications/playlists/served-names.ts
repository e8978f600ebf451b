import { foldersAbove } from '#bytes/path-overlap.ts';
import { foldedPath } from '../presentation/presentation.ts';

/**
 * The names of a folder by which servers find files. An address stands for the file of its name, byte for byte. Some servers and file
 * systems find others for it: a folder, of which they send a page, and files and folders whose names compose letters
 * otherwise, or differ in capitals.
 */
export class ServedNames {
  /** All folders that files lie in, however deep, but for the root. */
  readonly folders: ReadonlySet<string>;
  readonly #byFolded: ReadonlyMap<string, readonly string[]>;

  constructor(paths: Iterable<string>) {
    const files = [...paths];
    this.folders = foldersIn(files);
    const folders = Array.from(this.folders, (path) => `${path}/`);
    this.#byFolded = Map.groupBy([...files, ...folders], (name) => foldedPath(name.replace(/\/$/, '')));
  }

  /** Returns a file, or a folder with a slash at its end, that servers may send for `path`, but for the file at `own`. */
  besides(path: string, own: string | undefined): string | undefined {
    return this.#byFolded.get(foldedPath(path))?.find((name) => name !== own);
  }

  /** Returns true where there is a file that servers may send for `path`. */
  hasFile(path: string): boolean {
    return this.#byFolded.get(foldedPath(path))?.some((name) => !name.endsWith('/')) === true;
  }
}

/** Returns all folders that files lie in, however deep, but for the root. */
export function foldersIn(paths: Iterable<string>): Set<string> {
  return new Set(Array.from(paths, (path) => [...foldersAbove(path)]).flat());
}
