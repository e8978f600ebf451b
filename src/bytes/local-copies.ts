import { type LocalSource, localCopyOf } from './scratch-copy.ts';
import type { ScratchSpace } from './scratch-space.ts';
import type { SourceFolder } from './source-folder.ts';

/**
 * Files of a folder as files of this host, for the programs and the SDK that read no others. What lies elsewhere is copied
 * to scratch once, whoever asks for it.
 */
export class LocalCopies {
  readonly #folder: SourceFolder;
  readonly #scratch: ScratchSpace;
  readonly #sources = new Map<string, Promise<LocalSource>>();

  constructor(folder: SourceFolder, scratch: ScratchSpace) {
    this.#folder = folder;
    this.#scratch = scratch;
  }

  /** A file of the folder. It stays open, and may be read by its path, until `release`. */
  of(path: string, signal: AbortSignal): Promise<LocalSource> {
    const known = this.#sources.get(path);
    if (known !== undefined) return known;
    const source = this.#copy(path, signal);
    this.#sources.set(path, source);
    return source;
  }

  async #copy(path: string, signal: AbortSignal): Promise<LocalSource> {
    const opened = await this.#folder.open(path, signal);
    try {
      const source = await localCopyOf(opened, this.#scratch, signal);
      if (source !== opened) await opened.close();
      return source;
    } catch (error) {
      await opened.close();
      throw error;
    }
  }

  /** Closes all of them, and removes what was copied. Safe to call again. */
  async release(): Promise<void> {
    const sources = await Promise.allSettled(this.#sources.values());
    this.#sources.clear();
    for (const source of sources) if (source.status === 'fulfilled') await source.value.close();
  }
}
