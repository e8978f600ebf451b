import { opendir, realpath, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ifItAnswers } from '#bytes/file-system-gate.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import type { Config } from '#config/config.ts';
import type { BrowsedFolder } from '#contract/browsed-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { isInputError } from '#errors/catalogue.ts';
import {
  type LocalInputPolicy,
  localInputPolicy,
  type RealPathCheck,
  realPathCheck,
  resolveAllowed,
  translated,
} from './local/local-file.ts';

/** Folders that are listed at once. Node has four threads for files: a file system that hangs must leave some of them. */
const MAX_CONCURRENT_LISTINGS = 2;

/** Entries whose status is asked for at once. */
const MAX_CONCURRENT_ENTRIES = 8;

/** Names that are kept beyond a page before the last of them are dropped. */
const SPARE_NAMES = 4096;

type BrowsedEntry = BrowsedFolder['entries'][number];

/** A page of a folder, and the name to go on after; null on the last page. */
type BrowsedPage = Omit<BrowsedFolder, 'next_cursor'> & { readonly next: string | null };

interface BrowseRequest {
  /** The folder; the list of roots when it is undefined. */
  readonly path?: string | undefined;
  /** Only names after this one, in the order of code units. */
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Lists the folders that local inputs are read from, a page at a time, under the rules that inputs are opened by. */
export class InputBrowser {
  readonly #policy: LocalInputPolicy;
  readonly #maxEntries: number;
  readonly #listings = new Semaphore(MAX_CONCURRENT_LISTINGS);

  /** `configFile` is protected from being listed. */
  constructor(config: Config, configFile: string) {
    this.#policy = localInputPolicy(config, configFile);
    this.#maxEntries = config.input_resolvers.max_files;
  }

  /**
   * Lists a page of a folder in the order of the names. Hidden files, and what no input is read from, are left out. Throws
   * `INPUTS_NOT_BROWSABLE` where no roots are set, and `INPUT_FOLDER_UNUSABLE` for a folder that cannot be listed.
   */
  async list(request: BrowseRequest, signal: AbortSignal): Promise<BrowsedPage> {
    const { roots } = this.#policy;
    if (roots === undefined) throw new AppError('INPUTS_NOT_BROWSABLE', {});
    const { path, limit, after } = request;
    return await this.#listings.run(
      async () => {
        const check = realPathCheck(this.#policy);
        if (path === undefined) return await listRoots(roots, check);
        try {
          return await this.#listFolder({ path, limit, after }, check, signal);
        } catch (error) {
          if (!(error instanceof AppError && isInputError(error.reason))) throw error;
          throw new AppError('INPUT_FOLDER_UNUSABLE', { problem: error.message }, { cause: error, field: 'path' });
        }
      },
      1,
      signal,
    );
  }

  async #listFolder(
    { path: given, limit, after = '' }: BrowseRequest & { readonly path: string },
    check: RealPathCheck,
    signal: AbortSignal,
  ): Promise<BrowsedPage> {
    const path = resolve(given);
    // Errors tell the path as it was given: the folder that a relative one starts at is not named.
    if ((await realPathOf(path).catch(() => path)) === null)
      throw new AppError('SOURCE_OPEN_FAILED', { path: given, problem: 'its file system does not answer' });
    const folder = await resolveAllowed(given, check, () => realpath(path));
    const names = await translated(given, async () => {
      if (!(await stat(folder)).isDirectory()) throw new AppError('SOURCE_NOT_FOLDER', { path: given });
      return await this.#namesAfter(folder, after, limit + 1, signal);
    });
    const page = names.slice(0, limit);
    const entries = await mapConcurrent(page, MAX_CONCURRENT_ENTRIES, (name) =>
      entryOf(join(path, name), join(folder, name), check),
    );
    const above = await resolveAllowed(dirname(path), check, realpath).catch(() => null);
    return {
      path,
      parent: above === null ? null : dirname(path),
      entries: entries.filter((entry) => entry !== null),
      next: names.length > limit ? (page.at(-1) ?? null) : null,
    };
  }

  /**
   * Returns the first names after another one, in order. Keeps no more of them in memory than it needs.
   * Throws `FOLDER_TOO_LARGE`.
   */
  async #namesAfter(folder: string, after: string, count: number, signal: AbortSignal): Promise<string[]> {
    const names: string[] = [];
    let seen = 0;
    for await (const { name } of await opendir(folder, { bufferSize: 256 })) {
      signal.throwIfAborted();
      seen += 1;
      if (seen > this.#maxEntries) {
        throw new AppError('FOLDER_TOO_LARGE', { path: folder, what: 'files', limit: this.#maxEntries });
      }
      if (name <= after || name.startsWith('.')) continue;
      names.push(name);
      if (names.length >= count + SPARE_NAMES) keepFirst(names, count);
    }
    keepFirst(names, count);
    return names;
  }
}

function keepFirst(names: string[], count: number): void {
  names.sort((first, second) => (first < second ? -1 : 1));
  names.length = Math.min(names.length, count);
}

async function listRoots(roots: readonly string[], check: RealPathCheck): Promise<BrowsedPage> {
  const paths = roots.map((root) => resolve(root));
  const entries = await mapConcurrent(paths, MAX_CONCURRENT_ENTRIES, (root) => entryOf(root, root, check));
  return {
    path: null,
    parent: null,
    entries: entries.filter((entry) => entry?.kind === 'folder') as BrowsedEntry[],
    next: null,
  };
}

/**
 * Describes an entry of a folder; null for one that is no input: a device, a link that leads out of the roots,
 * nothing any more, or something on a file system that hangs.
 */
async function entryOf(path: string, location: string, check: RealPathCheck): Promise<BrowsedEntry | null> {
  try {
    const realPath = await realPathOf(location);
    if (realPath === null) return null;
    await check(path, realPath);
    const stats = await stat(realPath);
    if (stats.isDirectory()) return { name: basename(path), path, kind: 'folder' };
    return stats.isFile() ? { name: basename(path), path, kind: 'file', size_bytes: stats.size } : null;
  } catch {
    // It may not be read, or is gone: then it is no input.
    return null;
  }
}

/** Returns the path with its links resolved; null where its file system hangs. */
function realPathOf(path: string): Promise<string | null> {
  return ifItAnswers(path, () => realpath(path), null);
}
