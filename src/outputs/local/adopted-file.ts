import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';

/** A file that a program has written, to be made durable. Throws the system's errors as they are. */
export class AdoptedFile {
  readonly sizeBytes: number;
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle, sizeBytes: number) {
    this.#handle = handle;
    this.sizeBytes = sizeBytes;
  }

  static async open(path: string): Promise<AdoptedFile> {
    const handle = await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
    try {
      return new AdoptedFile(handle, (await handle.stat()).size);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async sync(): Promise<void> {
    await this.#handle.sync();
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
