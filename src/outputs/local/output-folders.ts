import type { FolderHandle } from './folder-handle.ts';
import { openOutputFolder } from './output-folder.ts';

/** Folders that are kept open between outputs. */
const MAX_OPEN_FOLDERS = 8;

/** Folders that nothing was written to for so long are closed: an open one keeps its file system from being unmounted. */
const IDLE_TIMEOUT_MS = 1000;

/** Opens the folders of destinations below a base folder; the outputs of a batch share the handle of theirs. */
export class OutputFolders {
  readonly #baseDir: string;
  /** The one that was used longest ago is first. */
  readonly #open = new Map<string, FolderHandle>();
  #idle: NodeJS.Timeout | undefined;

  constructor(baseDir: string) {
    this.#baseDir = baseDir;
  }

  /** Makes the folder where it is missing, durably, and opens it. The caller closes it. */
  async open(folder: string): Promise<FolderHandle> {
    const known = this.#open.get(folder);
    this.#idle?.refresh();
    if (known?.isAt(folder)) {
      this.#open.delete(folder);
      this.#open.set(folder, known);
      return known.share();
    }
    const opened = await openOutputFolder(this.#baseDir, folder);
    this.#keep(folder, opened.share());
    return opened;
  }

  #keep(folder: string, handle: FolderHandle): void {
    this.#forget(folder);
    this.#open.set(folder, handle);
    for (const oldest of this.#open.keys()) {
      if (this.#open.size <= MAX_OPEN_FOLDERS) break;
      this.#forget(oldest);
    }
    this.#idle ??= setTimeout(() => this.#closeAll(), IDLE_TIMEOUT_MS).unref();
    this.#idle.refresh();
  }

  #closeAll(): void {
    for (const folder of [...this.#open.keys()]) this.#forget(folder);
  }

  #forget(folder: string): void {
    void this.#open.get(folder)?.close();
    this.#open.delete(folder);
  }
}
