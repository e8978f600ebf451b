import { mkdir } from 'node:fs/promises';
import { basename } from 'node:path';
import { folderOf } from '#bytes/path-overlap.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import type { FolderHandle } from './folder-handle.ts';

/** Folders of one tree that are kept open; those that are used beyond that are opened again. */
const MAX_OPEN_FOLDERS = 32;

interface OpenFolder {
  readonly handle: FolderHandle;
  /** Calls that use it; it stays open until they have ended. */
  users: number;
}

/**
 * The folders below one folder, by their path relative to it, the empty path for itself. Each is opened from the one above
 * it, without following links. Throws the system's errors as they are.
 */
export class FolderTree {
  readonly #root: FolderHandle;
  /** The one that was used longest ago is first. */
  readonly #open = new Map<string, OpenFolder>();

  /** Takes over the handle, and closes it with the tree. */
  constructor(root: FolderHandle) {
    this.#root = root;
  }

  /** Runs `use` with the open folder of a file. `entry` is a path to the file. */
  async at<Result>(path: string, use: (entry: string, folder: FolderHandle) => Promise<Result> | Result) {
    return await this.in(folderOf(path), (handle) => use(handle.entry(basename(path)), handle));
  }

  /** Runs `use` with an open folder. */
  async in<Result>(folder: string, use: (handle: FolderHandle) => Promise<Result> | Result): Promise<Result> {
    if (folder === '') return await use(this.#root);
    const open = this.#enter(folder);
    open.users += 1;
    try {
      return await use(open.handle);
    } finally {
      open.users -= 1;
    }
  }

  /** Makes a folder. Returns false when it exists already. */
  async make(folder: string): Promise<boolean> {
    return await this.at(folder, async (entry) => {
      try {
        await mkdir(entry);
        return true;
      } catch (error) {
        if (systemErrorCode(error) !== 'EEXIST') throw error;
        return false;
      }
    });
  }

  /** Closes all folders. To be called when no call uses them. Safe to call again. */
  async close(): Promise<void> {
    for (const { handle } of this.#open.values()) await handle.close();
    this.#open.clear();
    await this.#root.close();
  }

  #enter(folder: string): OpenFolder {
    const known = this.#open.get(folder);
    const open = known ?? { handle: this.#handleAbove(folder).enter(basename(folder)), users: 0 };
    if (known === undefined) this.#evict();
    else this.#open.delete(folder);
    this.#open.set(folder, open);
    return open;
  }

  #handleAbove(folder: string): FolderHandle {
    const above = folderOf(folder);
    return above === '' ? this.#root : this.#enter(above).handle;
  }

  #evict(): void {
    for (const [folder, { handle, users }] of this.#open) {
      if (this.#open.size < MAX_OPEN_FOLDERS) return;
      if (users > 0) continue;
      this.#open.delete(folder);
      void handle.close();
    }
  }
}
