import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import { AppError } from '#errors/app-error.ts';
import { type S3Address, s3UrlOf } from '#s3/s3-address.ts';
import type { S3Deletion, S3Writer } from '#s3/s3-writer.ts';
import { contentTypeOf } from '../content-type.ts';
import type { FolderPart, FolderSink } from '../folder-sink.ts';
import { LONGEST_KEY_BYTES } from '../placement.ts';
import { innermostFirst, isPlaylist } from '../playlist-order.ts';
import type { DeliveredObjects, ObjectTags } from './delivered-objects.ts';
import { growingParts } from './object-parts.ts';
import { type Finished, ObjectUpload } from './object-upload.ts';
import type { PartMemory } from './part-memory.ts';
import type { RequestSlots } from './request-slots.ts';
import type { ScratchMirror } from './scratch-mirror.ts';
import { settleUploads } from './settle-uploads.ts';
import type { UploadNote } from './upload-journal.ts';

/** Objects that are made visible at once when a publication is delivered. */
const DELIVERED_AT_ONCE = 16;

/** What waits for the delivery is held in memory where it is small, up to so much together; uploaded without being seen otherwise. */
const KEPT_OBJECT_BYTES = 1024 * 1024;
const KEPT_BYTES = 16 * 1024 * 1024;

/** So many keys that stand at a place are remembered; where there are more, each of ours is treated as one of them. */
const MAX_STANDING_KEYS = 200_000;

/** What an output folder in S3 is made with. */
export interface S3FolderStaging {
  readonly writer: S3Writer;
  /** The key is that of the folder, without a slash at the end. */
  readonly at: S3Address;
  readonly note: UploadNote;
  readonly slots: RequestSlots;
  readonly delivered: DeliveredObjects;
  /** Keeps the files on this host too, where they are read back before the delivery. */
  readonly mirror: ScratchMirror | null;
  readonly memory: PartMemory;
  readonly signOfLife: () => void;
  readonly signal: AbortSignal;
}

/**
 * A publication that goes to S3 as it is written. S3 has no folder that could be renamed, so what a player sees is
 * decided by order: an object whose key is free is put at once, since nothing names it yet; what takes the place of
 * another object, and every playlist, waits for the delivery, playlists last. What was delivered to the same place
 * before and is no longer part of it goes then; nothing foreign does.
 */
export class S3Folder implements FolderSink {
  readonly destination: string;
  readonly #staging: S3FolderStaging;
  /** Keys at the destination before; null for too many to be remembered. */
  readonly #standing: ReadonlySet<string> | null;
  readonly #paths = new Set<string>();
  readonly #open = new Set<S3Part>();
  readonly #waiting = new Map<string, Finished>();
  /** The ETag of what stands at the destination by now, by path. */
  readonly #tags = new Map<string, string>();
  readonly #working = new Set<Promise<void>>();
  #keptBytes = 0;
  #failure: { readonly error: unknown } | null = null;
  #sealed = false;
  #delivered = false;

  private constructor(staging: S3FolderStaging, standing: ReadonlySet<string> | null) {
    this.destination = s3UrlOf(staging.at);
    this.#staging = staging;
    this.#standing = standing;
  }

  static async create(staging: S3FolderStaging): Promise<S3Folder> {
    return new S3Folder(staging, await standingKeys(staging));
  }

  async create(path: string, signal: AbortSignal): Promise<FolderPart> {
    signal.throwIfAborted();
    this.#throwFailure();
    assert(!path.split('/').some((segment) => /^\.{0,2}$/.test(segment)), `${path} is relative and inside the folder`);
    assert(!this.#sealed && !this.#paths.has(path), `${path} is created once, before the folder is sealed`);
    const at = this.#addressOf(path);
    this.#paths.add(path);
    const local = (await this.#staging.mirror?.create(path)) ?? null;
    const upload = new ObjectUpload({ ...this.#staging, at, contentType: contentTypeOf(path) }, growingParts());
    const part = new S3Part(upload, local, async () => {
      this.#open.delete(part);
      await this.#handOver(path, upload);
    });
    this.#open.add(part);
    return part;
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    const { mirror } = this.#staging;
    assert(this.#sealed && this.#paths.has(path), `${path} was staged, and the folder sealed`);
    assert(mirror !== null, 'what is read back was kept on this host');
    return await mirror.open(path);
  }

  async seal(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    assert(this.#open.size === 0, 'every part is closed before the folder is sealed');
    await Promise.all(this.#working);
    this.#throwFailure();
    this.#sealed = true;
  }

  /** Once the delivery has begun, the signal is not looked at any more. */
  async commit(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    assert(this.#sealed, 'a folder is sealed before it is committed');
    const { note, delivered, mirror } = this.#staging;
    // What replaces something cannot be taken back: half of the old publication would be left.
    if (this.#standing === null || this.#standing.size > 0) await note.delivering();
    const media = [...this.#waiting].filter(([path]) => !isPlaylist(path));
    await sideBySide(media, DELIVERED_AT_ONCE, ([path, finished]) => this.#appear(path, finished));
    const playlists = [...this.#waiting].filter(([path]) => isPlaylist(path));
    for (const [path, finished] of playlists.sort(([a], [b]) => innermostFirst(a, b))) {
      await this.#appear(path, finished);
    }
    this.#delivered = true;
    // The publication is delivered: what cannot be removed or recorded now harms no player.
    await this.#tidyUp(delivered).catch(() => undefined);
    note.erase();
    mirror?.release();
  }

  async discard(): Promise<void> {
    if (this.#delivered) return;
    for (const part of this.#open) await part.abandon();
    await Promise.all(this.#working);
    const { writer, note, mirror } = this.#staging;
    mirror?.release();
    this.#waiting.clear();
    // What cannot be taken back now stays noted, and is taken back at the next start.
    await settleUploads(writer, { noted: note.noted, mark: writer.mark ?? '', endedAtMs: Date.now() }).then(
      () => note.erase(),
      () => undefined,
    );
  }

  /** Takes over a file that was written. What may be seen already is put behind the caller's back. */
  async #handOver(path: string, upload: ObjectUpload): Promise<void> {
    this.#throwFailure();
    if (!upload.isWhole) {
      // Whoever wrote it has failed, and tells why.
      this.#failure ??= { error: new Error(`${path} was closed before it was whole`) };
      return await upload.stop();
    }
    if (isPlaylist(path) || this.#isStanding(path)) {
      const room = Math.min(KEPT_OBJECT_BYTES, KEPT_BYTES - this.#keptBytes);
      const finished = await upload.finish(Math.max(room, 0));
      if (finished.kind === 'bytes') this.#keptBytes += finished.bytes.length;
      this.#waiting.set(path, finished);
      return;
    }
    const finished = await upload.finish();
    const { slots } = this.#staging;
    const bytes = finished.kind === 'bytes' ? finished.bytes.length : 0;
    await slots.take(bytes);
    const working = this.#guard(() => this.#appear(path, finished)).finally(() => {
      slots.release(bytes);
      this.#working.delete(working);
    });
    this.#working.add(working);
  }

  /** Makes an object visible. */
  async #appear(path: string, finished: Finished): Promise<void> {
    const { writer, note, at: folder, memory, signOfLife } = this.#staging;
    const at = this.#addressOf(path);
    const isNew = !this.#isStanding(path);
    if (isNew) await note.putting(folder, at.key);
    const etag =
      finished.kind === 'bytes'
        ? await writer.put(at, finished.bytes, contentTypeOf(path))
        : await writer.completeUpload(finished.upload, finished.parts);
    if (finished.kind === 'parts') await note.completed(finished.upload);
    else memory.giveBack(finished.bytes);
    if (isNew) await note.put(at.key, etag);
    this.#tags.set(path, etag);
    signOfLife();
  }

  /**
   * Removes what the last delivery to this place had and this one has not, and records what stands there now. What could
   * not be removed stays recorded, for the next delivery to remove.
   */
  async #tidyUp(delivered: DeliveredObjects): Promise<void> {
    const last = await delivered.at(this.destination);
    const stale = new Map([...last].filter(([path]) => !this.#tags.has(path)));
    const removed = await this.#removeStale(stale).then(
      () => true,
      () => false,
    );
    await delivered.record(this.destination, removed ? this.#tags : new Map([...stale, ...this.#tags]));
  }

  /** Removes objects that are still what was delivered, by path and ETag. */
  async #removeStale(stale: ObjectTags): Promise<void> {
    if (stale.size === 0) return;
    const { writer, at } = this.#staging;
    const found: S3Deletion[] = [];
    for await (const { key, etag } of writer.objectsUnder({ ...at, key: `${at.key}/` })) {
      if (stale.get(key.slice(at.key.length + 1)) === etag) found.push({ key, etag });
    }
    await writer.deleteObjects(at.bucket, found);
  }

  #isStanding(path: string): boolean {
    return this.#standing === null || this.#standing.has(this.#addressOf(path).key);
  }

  #addressOf(path: string): S3Address {
    const { bucket, key } = this.#staging.at;
    const address = { bucket, key: `${key}/${path}` };
    if (Buffer.byteLength(address.key) <= LONGEST_KEY_BYTES) return address;
    const problem = `its key would be longer than ${LONGEST_KEY_BYTES} bytes`;
    throw new AppError('OUTPUT_FAILED', { path: s3UrlOf(address), problem });
  }

  /** Keeps the first failure; never rejects. */
  async #guard(step: () => Promise<void>): Promise<void> {
    if (this.#failure !== null) return;
    try {
      await step();
    } catch (error) {
      this.#failure ??= { error };
    }
  }

  #throwFailure(): void {
    this.#staging.signal.throwIfAborted();
    if (this.#failure !== null) throw this.#failure.error;
  }
}

/** The keys below a folder; null where there are too many. */
async function standingKeys({ writer, at, signal }: S3FolderStaging): Promise<ReadonlySet<string> | null> {
  const keys = new Set<string>();
  for await (const { key } of writer.objectsUnder({ ...at, key: `${at.key}/` }, signal)) {
    if (keys.size >= MAX_STANDING_KEYS) return null;
    keys.add(key);
  }
  return keys;
}

/** A file of the publication. `handOver` takes it over when it is whole. */
class S3Part implements FolderPart {
  readonly #upload: ObjectUpload;
  readonly #local: LocalPart | null;
  readonly #handOver: () => Promise<void>;
  #closed = false;

  constructor(upload: ObjectUpload, local: LocalPart | null, handOver: () => Promise<void>) {
    this.#upload = upload;
    this.#local = local;
    this.#handOver = handOver;
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#local?.write(bytes, position);
    await this.#upload.write(bytes, position, signal);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#local?.close();
    await this.#handOver();
  }

  /** Lets go of the file. */
  async abandon(): Promise<void> {
    this.#closed = true;
    await this.#local?.close();
    await this.#upload.stop();
  }
}

type LocalPart = Awaited<ReturnType<ScratchMirror['create']>>;
