import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';
import { syncFolder } from '../local/folder-handle.ts';

/** ETags by path, relative to the publication. */
export type ObjectTags = ReadonlyMap<string, string>;

/**
 * Records of the last commit to each destination in S3, so that a later commit removes the objects that are no longer part
 * of the publication, and nothing else. `<data_dir>/deliveries-s3/<hash of the destination>.json` lists paths and ETags.
 */
export class CommittedObjects {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'deliveries-s3');
  }

  /** Reads the last commit to a destination; empty for none, or for a record that was torn at a power cut. */
  async at(destination: string): Promise<ObjectTags> {
    try {
      const { objects } = JSON.parse(await readFile(this.#pathOf(destination), 'utf8')) as {
        objects: [string, string][];
      };
      return new Map(objects);
    } catch (error) {
      if (error instanceof SyntaxError || systemErrorCode(error) === 'ENOENT') return new Map();
      throw error;
    }
  }

  /** Records, durably, the objects of a commit, in place of the record before. */
  async record(destination: string, objects: ObjectTags): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const path = this.#pathOf(destination);
    const unfinished = `${path}.${randomUUID()}`;
    const handle = await open(unfinished, 'w', 0o600);
    try {
      await handle.writeFile(JSON.stringify({ place: destination, objects: [...objects] }));
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(unfinished, path);
    await syncFolder(this.#folder);
  }

  #pathOf(destination: string): string {
    return join(this.#folder, `${createHash('sha256').update(destination).digest('hex').slice(0, 32)}.json`);
  }
}
