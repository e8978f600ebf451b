import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';
import { syncFolder } from '../local/output-folder.ts';

/** ETags by path, relative to the publication. */
export type ObjectTags = ReadonlyMap<string, string>;

/**
 * What this service delivered last to each place in S3: so that what a later publication there no longer has is removed,
 * and nothing else. `<data_dir>/deliveries-s3/<hash of the place>.json` lists paths and ETags.
 */
export class DeliveredObjects {
  readonly #folder: string;

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'deliveries-s3');
  }

  /** What was delivered to a place last; empty for nothing, or where the record was torn when the host lost power. */
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

  /** Records, durably, what was delivered to a place, instead of what was before. */
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
