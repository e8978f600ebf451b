import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { openOwnFile } from '#bytes/file-source.ts';
import { createScratchFile, createScratchFolder, type ScratchFile, writeScratch } from '#bytes/scratch-space.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { MAX_KEY_BYTES, type S3Address, s3UrlOf } from '#s3/s3-address.ts';
import type { S3Deletion, S3Writer } from '#s3/s3-writer.ts';
import { contentTypeOf } from '../content-type.ts';
import { type FolderPart, type FolderSink, innermostPlaylistFirst, isPlaylist } from '../output-sink.ts';
import { BackgroundRequests, type RequestLimit } from './background-requests.ts';
import type { CommittedObjects, ObjectTags } from './committed-objects.ts';
import { growingParts } from './object-parts.ts';
import { type Finished, ObjectUpload } from './object-upload.ts';
import type { PartBufferPool } from './part-buffers.ts';
import { rollBackNoted } from './roll-back-uploads.ts';
import type { UploadNote } from './upload-journal.ts';

/** Objects that are made visible concurrently at a commit. */
const MAX_CONCURRENT_COMMITS = 16;

/** Objects that wait for the commit stay in memory up to these sizes, each and together; larger ones are uploaded parts. */
const KEPT_OBJECT_BYTES = 1024 * 1024;
const KEPT_BYTES = 16 * 1024 * 1024;

/** Keys of existing objects that are remembered; beyond, every key is treated as existing. */
const MAX_EXISTING_KEYS = 200_000;

/** The parameters of a staged folder in S3. */
interface S3FolderStaging {
  readonly writer: S3Writer;
  /** The key is that of the folder, without a slash at the end. */
  readonly at: S3Address;
  readonly note: UploadNote;
  readonly requestLimit: RequestLimit;
  readonly committed: CommittedObjects;
  /** A folder of this host that keeps the files too, when they are read back before the commit; null otherwise. */
  readonly mirror: ScratchFile | null;
  readonly buffers: PartBufferPool;
  readonly heartbeat: () => void;
  readonly signal: AbortSignal;
}

/**
 * A publication that is uploaded to S3 as it is written. S3 has no folder that could be renamed, so order decides what a
 * player sees: an object whose key is free is put at once, since nothing names it yet; an object that replaces another, and
 * every playlist, waits for the commit, playlists last. Objects of the previous commit that are no longer part of the
 * publication are deleted then; nothing foreign is.
 */
export class StagedS3Folder implements FolderSink {
  readonly destination: string;
  readonly #staging: S3FolderStaging;
  /** Keys that existed at the destination; null for too many to be remembered. */
  readonly #existing: ReadonlySet<string> | null;
  readonly #paths = new Set<string>();
  /** The files that are being written, each with a function that gives it up. */
  readonly #open = new Map<FolderPart, () => Promise<void>>();
  readonly #waiting = new Map<string, Finished>();
  /** The ETags of the committed objects, by path. */
  readonly #tags = new Map<string, string>();
  readonly #requests: BackgroundRequests;
  #keptBytes = 0;
  #sealed = false;
  #committed = false;

  private constructor(staging: S3FolderStaging, existing: ReadonlySet<string> | null) {
    this.destination = s3UrlOf(staging.at);
    this.#staging = staging;
    this.#requests = new BackgroundRequests(staging.requestLimit);
    this.#existing = existing;
  }

  static async create(staging: S3FolderStaging): Promise<StagedS3Folder> {
    return new StagedS3Folder(staging, await existingKeys(staging));
  }

  async create(path: string, signal: AbortSignal): Promise<FolderPart> {
    signal.throwIfAborted();
    this.#requests.throwIfFailed(this.#staging.signal);
    assert(!path.split('/').some((segment) => /^\.{0,2}$/.test(segment)), `${path} is relative and inside the folder`);
    assert(!this.#sealed && !this.#paths.has(path), `${path} is created once, before the folder is sealed`);
    const at = this.#addressOf(path);
    this.#paths.add(path);
    const { mirror } = this.#staging;
    const local = mirror === null ? null : await createLocal(join(mirror.path, path));
    const upload = new ObjectUpload({ ...this.#staging, at, contentType: contentTypeOf(path) }, growingParts());
    const part: FolderPart = {
      write: async (bytes, position, stop) => {
        stop.throwIfAborted();
        await local?.write(bytes, position);
        await upload.write(bytes, position, stop);
      },
      close: async () => {
        if (!this.#open.delete(part)) return;
        await local?.close();
        await this.#handOver(path, upload);
      },
    };
    this.#open.set(part, async () => {
      await local?.close();
      await upload.stop();
    });
    return part;
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    const { mirror } = this.#staging;
    assert(this.#sealed && this.#paths.has(path), `${path} was staged, and the folder sealed`);
    assert(mirror !== null, 'what is read back was kept on this host');
    return await openOwnFile(join(mirror.path, path), path);
  }

  async seal(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    assert(this.#open.size === 0, 'every part is closed before the folder is sealed');
    await this.#requests.settled();
    this.#requests.throwIfFailed(this.#staging.signal);
    this.#sealed = true;
  }

  /** Ignores the signal once the commit has started. */
  async commit(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    assert(this.#sealed, 'a folder is sealed before it is committed');
    const { note, committed, mirror } = this.#staging;
    const last = await committed.at(this.destination);
    // Before anything is replaced, so that the next commit removes what a failure in the middle leaves behind.
    await committed.record(this.destination, new Map([...last, ...this.#tags]));
    // Replaced objects cannot be rolled back: half of the old publication would be left. Nor can those that it removes later.
    const isReplacing = [...this.#waiting.keys()].some((path) => this.#isExisting(path));
    if (isReplacing) await note.committing();
    const media = [...this.#waiting].filter(([path]) => !isPlaylist(path));
    await mapConcurrent(media, MAX_CONCURRENT_COMMITS, ([path, finished]) => this.#publish(path, finished));
    const playlists = [...this.#waiting].filter(([path]) => isPlaylist(path));
    for (const [path, finished] of playlists.sort(([a], [b]) => innermostPlaylistFirst(a, b))) {
      await this.#publish(path, finished);
    }
    if (!isReplacing && last.size > 0) await note.committing();
    this.#committed = true;
    // The publication is committed: whatever cannot be removed or recorded now harms no player.
    await this.#tidyUp(last).catch(() => undefined);
    note.erase();
    mirror?.release();
  }

  async discard(): Promise<void> {
    if (this.#committed) return;
    for (const giveUp of this.#open.values()) await giveUp();
    this.#open.clear();
    await this.#requests.settled();
    const { writer, note, mirror } = this.#staging;
    mirror?.release();
    this.#waiting.clear();
    await rollBackNoted(writer, note);
  }

  /** Takes a written file. Objects that may be visible already are put in the background. */
  async #handOver(path: string, upload: ObjectUpload): Promise<void> {
    this.#requests.throwIfFailed(this.#staging.signal);
    if (!upload.isWhole) {
      // The writer has failed, and reports why.
      this.#requests.fail(new Error(`${path} was closed before it was whole`));
      return await upload.stop();
    }
    if (isPlaylist(path) || this.#isExisting(path)) {
      const freeBytes = Math.min(KEPT_OBJECT_BYTES, KEPT_BYTES - this.#keptBytes);
      const finished = await upload.finish(Math.max(freeBytes, 0));
      if (finished.kind === 'bytes') this.#keptBytes += finished.bytes.length;
      this.#waiting.set(path, finished);
      return;
    }
    const finished = await upload.finish();
    const bytes = finished.kind === 'bytes' ? finished.bytes.length : 0;
    await this.#requests.start(bytes, () => this.#publish(path, finished));
  }

  /** Makes an object visible. */
  async #publish(path: string, finished: Finished): Promise<void> {
    const { writer, note, at: folder, buffers, heartbeat } = this.#staging;
    const at = this.#addressOf(path);
    const isNew = !this.#isExisting(path);
    if (isNew) await note.putting(folder, at.key);
    const etag =
      finished.kind === 'bytes'
        ? await writer.put(at, finished.bytes, contentTypeOf(path))
        : await writer.completeUpload(finished.upload, finished.parts);
    if (finished.kind === 'parts') await note.completed(finished.upload);
    else buffers.release(finished.bytes);
    if (isNew) await note.put(at.key, etag);
    this.#tags.set(path, etag);
    heartbeat();
  }

  /**
   * Removes the objects of the previous commit that this one does not have, and records the current ones. Objects that cannot
   * be removed stay recorded, for the next commit to remove.
   */
  async #tidyUp(last: ObjectTags): Promise<void> {
    const stale = new Map([...last].filter(([path]) => !this.#tags.has(path)));
    const removed = await this.#removeStale(stale).then(
      () => true,
      () => false,
    );
    await this.#staging.committed.record(this.destination, removed ? this.#tags : new Map([...stale, ...this.#tags]));
  }

  /** Removes objects that are unchanged since the previous commit, by path and ETag. */
  async #removeStale(stale: ObjectTags): Promise<void> {
    if (stale.size === 0) return;
    const { writer, at } = this.#staging;
    const found: S3Deletion[] = [];
    for await (const { key, etag } of writer.list({ ...at, key: `${at.key}/` })) {
      if (stale.get(key.slice(at.key.length + 1)) === etag) found.push({ key, etag });
    }
    await writer.deleteObjects(at.bucket, found);
  }

  #isExisting(path: string): boolean {
    return this.#existing === null || this.#existing.has(this.#addressOf(path).key);
  }

  #addressOf(path: string): S3Address {
    const { bucket, key } = this.#staging.at;
    const address = { bucket, key: `${key}/${path}` };
    if (Buffer.byteLength(address.key) <= MAX_KEY_BYTES) return address;
    const problem = `its key would be longer than ${MAX_KEY_BYTES} bytes`;
    throw new AppError('OUTPUT_FAILED', { path: s3UrlOf(address), problem });
  }
}

/** Returns the keys below a folder; null where there are too many. */
async function existingKeys({ writer, at, signal }: S3FolderStaging): Promise<ReadonlySet<string> | null> {
  const keys = new Set<string>();
  for await (const { key } of writer.list({ ...at, key: `${at.key}/` }, signal)) {
    if (keys.size >= MAX_EXISTING_KEYS) return null;
    keys.add(key);
  }
  return keys;
}

/** Creates a scratch file, and the folders above it. */
async function createLocal(path: string) {
  await createScratchFolder(dirname(path));
  const handle = await createScratchFile(path);
  return {
    write: (bytes: Uint8Array, position: number) => writeScratch(handle, path, bytes, position),
    close: () => handle.close(),
  };
}
