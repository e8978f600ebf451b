import { dirname, join } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import { createScratchFile, createScratchFolder, type ScratchFile, writeScratch } from '#bytes/scratch-space.ts';

/** The files of an output folder on this host, for as long as they are read back. */
export class ScratchMirror {
  readonly #folder: ScratchFile;

  constructor(folder: ScratchFile) {
    this.#folder = folder;
  }

  /** Creates a file, and the folders above it. */
  async create(path: string) {
    const target = join(this.#folder.path, path);
    await createScratchFolder(dirname(target));
    const handle = await createScratchFile(target);
    return {
      write: (bytes: Uint8Array, position: number) => writeScratch(handle, target, bytes, position),
      close: () => handle.close(),
    };
  }

  async open(path: string): Promise<ByteSource> {
    return await openOwnFile(join(this.#folder.path, path), path);
  }

  /** Removes everything. Safe to call again. */
  release(): void {
    this.#folder.release();
  }
}
