import assert from 'node:assert/strict';
import type { FileHandle } from 'node:fs/promises';
import type { ByteSink } from '#bytes/byte-sink.ts';
import type { StoredObject } from '#bytes/byte-source.ts';
import type { CopyRun } from '#bytes/copy-runs.ts';
import { createScratchFile, writeScratch } from '#bytes/scratch-copy.ts';
import type { ScratchFile } from '#bytes/scratch-space.ts';
import { s3UrlOf } from '#s3/s3-address.ts';
import { planParts } from './object-parts.ts';
import { type Finished, ObjectUpload, type UploadPlace } from './object-upload.ts';
import { settleUploads } from './settle-uploads.ts';

/** Completing an upload of many parts takes S3 minutes; so often the service is told that it is waited for. */
const SIGN_OF_LIFE_INTERVAL_MS = 30_000;

/** What an output file in S3 is made with. */
export interface S3FileStaging extends UploadPlace {
  readonly sizeBytes: number;
  /** Room on this host for the same bytes, where the output is read back before it is delivered. */
  readonly scratch: ScratchFile | null;
}

/**
 * A file that goes to S3 as it is written: in one request where it is small, else as a multipart upload, which nobody
 * sees before it is completed. Where the output is read back, its bytes are written to this host beside.
 */
export class S3File implements ByteSink {
  readonly destination: string;
  readonly stagedPath?: string;
  readonly #staging: S3FileStaging;
  readonly #upload: ObjectUpload;
  readonly #local: FileHandle | null;
  #finished: Finished | null = null;
  #delivered = false;

  private constructor(staging: S3FileStaging, local: FileHandle | null) {
    this.destination = s3UrlOf(staging.at);
    if (staging.scratch !== null) this.stagedPath = staging.scratch.path;
    this.#staging = staging;
    this.#upload = new ObjectUpload(staging, planParts(staging.sizeBytes, []));
    this.#local = local;
  }

  static async create(staging: S3FileStaging): Promise<S3File> {
    const { scratch } = staging;
    return new S3File(staging, scratch === null ? null : await createScratchFile(scratch.path));
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
    const { note, scratch, signOfLife } = this.#staging;
    const waiting = setInterval(signOfLife, SIGN_OF_LIFE_INTERVAL_MS);
    try {
      await this.#deliver();
    } finally {
      clearInterval(waiting);
    }
    this.#delivered = true;
    note.erase();
    scratch?.release();
  }

  async #deliver(): Promise<void> {
    const { writer, at, contentType } = this.#staging;
    const finished = this.#finished;
    assert(finished !== null, 'a file is sealed before it is committed');
    if (finished.kind === 'bytes') await writer.put(at, finished.bytes, contentType);
    else await writer.completeUpload(finished.upload, finished.parts);
  }

  async discard(): Promise<void> {
    const { writer, note, scratch } = this.#staging;
    if (this.#delivered) return;
    await this.#upload.stop();
    await this.#local?.close();
    scratch?.release();
    this.#finished = null;
    // What cannot be taken back now stays noted, and is taken back at the next start.
    await settleUploads(writer, { noted: note.noted, mark: writer.mark ?? '', endedAtMs: Date.now() }).then(
      () => note.erase(),
      () => undefined,
    );
  }
}
