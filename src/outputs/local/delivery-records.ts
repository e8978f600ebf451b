import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';
import { type FileSizes, type FolderLook, lookForForeign } from './folder-contents.ts';
import type { FolderHandle } from './folder-handle.ts';
import { syncFolder } from './output-folder.ts';

/**
 * What this service delivered as a folder, by place: so that a publication delivered there before is told from what
 * belongs to others. `deliveries/<hash of the place>/` in the folder of records holds a record for each attempt at a delivery, a list of
 * files and sizes. It is written before the delivery; that there may be one of a delivery that never came to be does no
 * harm, because a record counts only where it fits what is there. A delivery removes the older ones of its place.
 */
export class DeliveryRecords {
  readonly #folder: string;

  constructor(recordsDir: string) {
    this.#folder = join(recordsDir, 'deliveries');
  }

  /** Records, durably, what is about to be delivered to a place. Returns the record. */
  async add(realDestination: string, files: FileSizes): Promise<string> {
    const folder = this.#folderOf(realDestination);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const record = join(folder, `${randomUUID()}.json`);
    await writeDurably(record, JSON.stringify({ place: realDestination, files: [...files] }));
    const recordsDir = dirname(this.#folder);
    for (const made of [folder, this.#folder, recordsDir, dirname(recordsDir)]) await syncFolder(made);
    return record;
  }

  async remove(record: string): Promise<void> {
    await rm(record, { force: true });
  }

  /** Removes all records of the record's place but this one. */
  async keepOnly(record: string): Promise<void> {
    for (const name of await readdir(dirname(record))) {
      if (name !== basename(record)) await rm(join(dirname(record), name), { force: true });
    }
  }

  /** A look at the folder at a place that holds nothing but what this service delivered there; null for any other. */
  async lookAtOwn(folder: FolderHandle, name: string): Promise<FolderLook | null> {
    for (const files of [NO_FILES, ...(await this.#recordsOf(join(folder.path, name)))]) {
      const look = await lookForForeign(folder.entry(name), files);
      if (look !== null) return look;
    }
    return null;
  }

  async #recordsOf(realDestination: string): Promise<FileSizes[]> {
    const folder = this.#folderOf(realDestination);
    const names = await readdir(folder).catch((error: unknown) => {
      if (systemErrorCode(error) === 'ENOENT') return [];
      throw error;
    });
    const records = await Promise.all(names.map((name) => readRecord(join(folder, name))));
    return records.filter((files) => files !== null);
  }

  #folderOf(realDestination: string): string {
    return join(this.#folder, createHash('sha256').update(realDestination).digest('hex').slice(0, 32));
  }
}

/** An empty folder holds nothing that is anybody's. */
const NO_FILES: FileSizes = new Map();

async function writeDurably(path: string, text: string): Promise<void> {
  const handle = await open(path, 'w', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The files of a record; null for one that was torn when the host lost power, or was removed meanwhile. */
async function readRecord(path: string): Promise<FileSizes | null> {
  try {
    const { files } = JSON.parse(await readFile(path, 'utf8')) as { files: [string, number][] };
    return new Map(files);
  } catch (error) {
    if (error instanceof SyntaxError || systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
}
