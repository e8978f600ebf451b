import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { syncFolder } from '#bytes/file-source.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { outputError, withOutputErrors } from '../output-sink.ts';

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

  /**
   * Reads the last commit to a destination; empty for none, or for a record that was torn at a power cut.
   * Throws `OUTPUT_FAILED`.
   */
  async at(destination: string): Promise<ObjectTags> {
    const path = this.#pathOf(destination);
    try {
      const { objects } = JSON.parse(await readFile(path, 'utf8')) as { objects: [string, string][] };
      return new Map(objects);
    } catch (error) {
      if (error instanceof SyntaxError || systemErrorCode(error) === 'ENOENT') return new Map();
      throw outputError(path, error);
    }
  }

  /** Records, durably, the objects of a commit, in place of the record before. Throws `OUTPUT_FAILED`. */
  async record(destination: string, objects: ObjectTags): Promise<void> {
    const path = this.#pathOf(destination);
    await withOutputErrors(path, async () => {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      // Another job may commit to the same destination now.
      const unfinished = `${path}.${randomUUID()}`;
      try {
        const contents = JSON.stringify({ place: destination, objects: [...objects] });
        await writeFile(unfinished, contents, { mode: 0o600, flush: true });
        await rename(unfinished, path);
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
      await syncFolder(this.#folder);
    });
  }

  #pathOf(destination: string): string {
    return join(this.#folder, `${createHash('sha256').update(destination).digest('hex').slice(0, 32)}.json`);
  }
}
