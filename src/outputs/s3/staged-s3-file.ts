import assert from 'node:assert/strict';
import type { FileHandle } from 'node:fs/promises';
import type { ByteSink } from '#bytes/byte-sink.ts';
import type { StoredObject } from '#bytes/byte-source.ts';
import { createScratchFile, type ScratchFile, writeScratch } from '#bytes/scratch-space.ts';
import type { CopyRun } from '#bytes/splice-plan.ts';
import { s3UrlOf } from '#s3/s3-address.ts';
import { planParts } from './object-parts.ts';
import { type Finished, ObjectUpload, type UploadContext } from './object-upload.ts';
import { rollBackUploads } from './roll-back-uploads.ts';

/** Interval of heartbeats while S3 completes an upload, which takes minutes for one of many parts. */
const HEARTBEAT_INTERVAL_MS = 30_000;

/** The parameters of a staged file in S3. */
export interface S3FileStaging extends UploadContext {
  readonly sizeBytes: number;
  /** Scratch space for a copy of the output, when it is read back before the commit; null otherwise. */
  readonly scratch: ScratchFile | null;
}

/**
 * A file that goes to S3 as it is written: in one request where it is small, else as a multipart upload, which nobody
 * sees before it is completed. Where the output is read back, its bytes are written to this host beside.
 */
export class StagedS3File implements ByteSink {
  readonly destination: string;
  readonly stagedPath?: string;
  readonly #staging: S3FileStaging;
  readonly #upload: ObjectUpload;
  readonly #local: FileHandle | null;
  #finished: Finished | null = null;
  #committed = false;

  private constructor(staging: S3FileStaging, local: FileHandle | null) {
    this.destination = s3UrlOf(staging.at);
    if (staging.scratch !== null) this.stagedPath = staging.scratch.path;
    this.#staging = staging;
    this.#upload = new ObjectUpload(staging, planParts(staging.sizeBytes, []));
    this.#local = local;
  }

  static async create(staging: S3FileStaging): Promise<StagedS3File> {
    const { scratch } = staging;
    return new StagedS3File(staging, scratch === null ? null : await createScratchFile(scratch.path));
  }

  async copyFrom(object: StoredObject, runs: readonly CopyRun[], signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#upload.copyFrom(object, this.#staging.sizeBytes, runs);
  }

  async write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { scratch } = this.#staging;
    const local = this.#local;
    if (scratch !== null && local !== null) await writeScratch(local, scratch.path, bytes, position);
    await this.#upload.write(bytes, position, signal);
  }

  async seal(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#finished = await this.#upload.finish();
    assert(this.#upload.sizeBytes === this.#staging.sizeBytes, 'a file has the size that it was staged with');
    await this.#local?.close();
  }

  /** Once the last request is under way, the signal is not looked at any more. */
  async commit(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { note, scratch, heartbeat } = this.#staging;
    const waiting = setInterval(heartbeat, HEARTBEAT_INTERVAL_MS);
    try {
      await this.#send();
    } finally {
      clearInterval(waiting);
    }
    this.#committed = true;
    note.erase();
    scratch?.release();
  }

  async #send(): Promise<void> {
    const { writer, at, contentType } = this.#staging;
    const finished = this.#finished;
    assert(finished !== null, 'a file is sealed before it is committed');
    if (finished.kind === 'bytes') await writer.put(at, finished.bytes, contentType);
    else await writer.completeUpload(finished.upload, finished.parts);
  }

  async discard(): Promise<void> {
    const { writer, note, scratch } = this.#staging;
    if (this.#committed) return;
    await this.#upload.stop();
    await this.#local?.close();
    scratch?.release();
    this.#finished = null;
    // Whatever cannot be rolled back now stays in the note, and is rolled back at the next start.
    await rollBackUploads(writer, { noted: note.noted, mark: writer.mark ?? '', endedAtMs: Date.now() }).then(
      () => note.erase(),
      () => undefined,
    );
  }
}
