import { createHash } from 'node:crypto';
import { closeSync, fdatasync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { syncFolder } from '#bytes/file-source.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { S3Address } from '#s3/s3-address.ts';
import type { S3Upload } from '#s3/s3-writer.ts';
import { withOutputErrors } from '../output-sink.ts';
import { noteNamesIn, notePrefixOf } from '../staging-journal.ts';

const syncData = promisify(fdatasync);

/** A step in a bucket that was done, or is about to be. Times are in milliseconds since 1970. */
type Entry =
  /** An upload is about to be begun; until the next entry of its key, S3 may or may not have it. */
  | {
      readonly kind: 'beginning';
      readonly at: S3Address;
      readonly timeMs: number;
      /** Uploads to the same key that were under way before. */
      readonly others: readonly string[];
    }
  | { readonly kind: 'begun'; readonly upload: S3Upload }
  /** The upload became an object. */
  | { readonly kind: 'completed'; readonly uploadId: string }
  /** An object is about to be put where there was none, below a folder. */
  | { readonly kind: 'putting'; readonly folder: S3Address; readonly key: string }
  | { readonly kind: 'put'; readonly key: string; readonly etag: string }
  /** Objects of another publication are about to be replaced or removed: none of this one is rolled back, whenever it is put. */
  | { readonly kind: 'delivering' };

/** An upload that may have been begun, with the time just before, and uploads to the same key that it is not. */
export type MaybeBegun = Extract<Entry, { kind: 'beginning' }>;

/** Everything that a note says may still be in S3. */
export interface NotedUploads {
  readonly uploads: readonly S3Upload[];
  readonly maybeBegun: readonly MaybeBegun[];
  /** The folder of the objects that were put, and their ETags; null when the response was never recorded. */
  readonly folder: S3Address | null;
  readonly puts: ReadonlyMap<string, string | null>;
}

/** Returns the note of one output of one attempt. Nothing is written before its first entry. */
export function uploadNoteOf(dataDir: string, destination: string, key: StagingKey): UploadNote {
  const hash = createHash('sha256').update(destination).digest('hex').slice(0, 8);
  return new UploadNote(join(journalFolderOf(dataDir), `${notePrefixOf(key)}${hash}.jsonl`));
}

/**
 * The note of what is being uploaded, so that nothing stays behind when a process is killed: a file of JSON lines in
 * `<data_dir>/uploads/`, whose first line is there before anything is in S3. It is removed with the last.
 */
export class UploadNote {
  readonly #path: string;
  readonly #entries: Entry[] = [];
  #file: number | null = null;
  #made: Promise<void> | null = null;

  constructor(path: string) {
    this.#path = path;
  }

  /** The current content of the note. */
  get noted(): NotedUploads {
    return notedBy(this.#entries);
  }

  /** Notes, durably, that an upload is about to be begun, and which are under way to the same key. */
  async beginning(at: S3Address, others: readonly string[]): Promise<void> {
    await this.#add({ kind: 'beginning', at: plain(at), timeMs: Date.now(), others });
    await this.#sync();
  }

  async #sync(): Promise<void> {
    // A disk that is busy keeps this waiting for seconds, and what is being read and sent goes on meanwhile.
    await withOutputErrors(this.#path, () => syncData(this.#file as number));
  }

  async begun(upload: S3Upload): Promise<void> {
    await this.#add({ kind: 'begun', upload });
  }

  async completed({ uploadId }: S3Upload): Promise<void> {
    await this.#add({ kind: 'completed', uploadId });
  }

  async putting(folder: S3Address, key: string): Promise<void> {
    await this.#add({ kind: 'putting', folder: plain(folder), key });
  }

  async put(key: string, etag: string): Promise<void> {
    await this.#add({ kind: 'put', key, etag });
  }

  /** Notes, durably, that objects are about to be replaced. */
  async committing(): Promise<void> {
    await this.#add({ kind: 'delivering' });
    await this.#sync();
  }

  /** Removes the note. Safe to call again. */
  erase(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
    this.#made = null;
    rmSync(this.#path, { force: true });
  }

  async #add(entry: Entry): Promise<void> {
    await withOutputErrors(this.#path, async () => {
      this.#made ??= this.#make();
      await this.#made;
      this.#entries.push(entry);
      writeSync(this.#file as number, `${JSON.stringify(entry)}\n`);
    });
  }

  /** Makes the note. An earlier one of the same attempt was rolled back before it started again. */
  async #make(): Promise<void> {
    const folder = dirname(this.#path);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#file = openSync(this.#path, 'a', 0o600);
    await syncFolder(folder);
  }
}

/** The note of a lost process. */
interface LeftoverNote {
  readonly path: string;
  readonly noted: NotedUploads;
  erase(): Promise<void>;
}

/** Reads the notes in a data folder: all, or those of one attempt at an input. */
export async function leftoverNotes(dataDir: string, key?: StagingKey): Promise<LeftoverNote[]> {
  const folder = journalFolderOf(dataDir);
  const names = (await noteNamesIn(folder, key)).filter((name) => name.endsWith('.jsonl'));
  return await Promise.all(
    names
      .map((name) => join(folder, name))
      .map(async (path) => ({
        path,
        noted: notedBy(entriesOf(await readFile(path, 'utf8'))),
        erase: () => rm(path, { force: true }),
      })),
  );
}

/** Reads the entries of a note. A last line that was torn is left out: it tells of something that was not yet done. */
function entriesOf(text: string): Entry[] {
  return text.split('\n').slice(0, -1).flatMap(entryOf);
}

function entryOf(line: string): Entry[] {
  try {
    return [JSON.parse(line) as Entry];
  } catch {
    return [];
  }
}

function notedBy(entries: readonly Entry[]): NotedUploads {
  const uploads = new Map<string, S3Upload>();
  const maybeBegun = new Map<string, MaybeBegun>();
  const puts = new Map<string, string | null>();
  let isReplacing = false;
  let folder: S3Address | null = null;
  for (const entry of entries) {
    switch (entry.kind) {
      case 'beginning':
        maybeBegun.set(entry.at.key, entry);
        break;
      case 'begun':
        maybeBegun.delete(entry.upload.key);
        uploads.set(entry.upload.uploadId, entry.upload);
        break;
      case 'completed':
        uploads.delete(entry.uploadId);
        break;
      case 'putting':
        folder = entry.folder;
        puts.set(entry.key, null);
        break;
      case 'put':
        puts.set(entry.key, entry.etag);
        break;
      case 'delivering':
        isReplacing = true;
        break;
    }
  }
  if (isReplacing) puts.clear();
  return { uploads: [...uploads.values()], maybeBegun: [...maybeBegun.values()], folder, puts };
}

function plain({ bucket, key }: S3Address): S3Address {
  return { bucket, key };
}

function journalFolderOf(dataDir: string): string {
  return join(dataDir, 'uploads');
}
