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
  readonly #byFolded = new Map<string, string[]>();

  constructor(paths: Iterable<string>) {
    const files = [...paths];
    this.folders = foldersIn(files);
    for (const path of files) this.#add(path, path);
    for (const path of this.folders) this.#add(path, `${path}/`);
  }

  #add(path: string, name: string): void {
    const folded = foldedPath(path);
    const known = this.#byFolded.get(folded);
    if (known === undefined) this.#byFolded.set(folded, [name]);
    else known.push(name);
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
  const folders = new Set<string>();
  for (const path of paths) {
    for (const folder of foldersAbove(path)) {
      if (folders.has(folder)) break;
      folders.add(folder);
    }
  }
  return folders;
}
