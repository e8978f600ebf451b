import assert from 'node:assert/strict';
import type { FileHandle } from 'node:fs/promises';
import type { ByteSink } from '#bytes/byte-sink.ts';
import type { StoredObject } from '#bytes/byte-source.ts';
import { createScratchFile, type ScratchFile, type ScratchSpace, writeScratch } from '#bytes/scratch-space.ts';
import type { CopyRun } from '#bytes/splice-plan.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import type { Config } from '#config/config.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { parseS3Url, s3UrlOf } from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { S3Writer } from '#s3/s3-writer.ts';
import { contentTypeOf } from './content-type.ts';
import { type Naming, s3Destination } from './output-path.ts';
import { type FolderSink, type OutputSink, withOutputErrors } from './output-sink.ts';
import { CommittedObjects } from './s3/committed-objects.ts';
import { MAX_OBJECT_BYTES, planParts } from './s3/object-parts.ts';
import { type Finished, ObjectUpload, type UploadContext } from './s3/object-upload.ts';
import { PartBufferPool } from './s3/part-buffers.ts';
import { markOf, rollBackNoted } from './s3/roll-back-uploads.ts';
import { StagedS3Folder } from './s3/staged-s3-folder.ts';
import { uploadNoteOf } from './s3/upload-journal.ts';

/** Concurrent requests with a body of one output: parts of a file, or files of a publication. */
const MAX_FILE_REQUESTS = 4;
const MAX_FOLDER_REQUESTS = 16;
/**
 * Bytes of these requests in memory: three parts of the usual size. With four, a film took 10 MB more, for the same
 * processor time. The parts of an object beyond 80 GB are larger, and go one by one in the end.
 */
const MAX_REQUEST_BYTES = 24 * 1024 * 1024;

/** The keys of `output_sinks.s3`. */
export type S3OutputSettings = NonNullable<Config['output_sinks']['s3']>;

interface S3SinkOptions {
  readonly settings: S3OutputSettings;
  /** Holds the notes of what is uploaded, and records of committed publications. */
  readonly dataDir: string;
  /** True when outputs are read back before the commit: a copy on this host is kept until then. */
  readonly readBack: boolean;
}

/** Outputs as objects of a bucket: `s3://<bucket>/<base_prefix>/<prefix>/<name>/<leaf>`. */
export class S3Sink implements OutputSink {
  readonly #options: S3SinkOptions;
  readonly #committed: CommittedObjects;

  constructor(options: S3SinkOptions) {
    this.#options = options;
    this.#committed = new CommittedObjects(options.dataDir);
  }

  namingOf(): Naming {
    return this.#options.settings.naming;
  }

  destinationOf(output: ApiOutputSpec | null, leaf: string): string {
    assert(output?.type === 's3', 'the sink was chosen by the output');
    return s3Destination(output, leaf, this.#options.settings.base_prefix);
  }

  async stageFile(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<ByteSink> {
    signal.throwIfAborted();
    if (sizeBytes > MAX_OBJECT_BYTES) {
      const problem = `it has ${sizeBytes} bytes, and an object of S3 at most ${MAX_OBJECT_BYTES}`;
      throw new AppError('OUTPUT_FAILED', { path: destination, problem });
    }
    const { readBack } = this.#options;
    const common = await this.#commonOf(destination, key, signal, scratch);
    return await withOutputErrors(destination, async () =>
      StagedS3File.create({
        ...common,
        sizeBytes,
        contentType: contentTypeOf(destination),
        requestLimit: { requests: new Semaphore(MAX_FILE_REQUESTS), bytes: new Semaphore(MAX_REQUEST_BYTES) },
        scratch: readBack ? await scratch.reserve('output', sizeBytes) : null,
      }),
    );
  }

  async openFile(): Promise<null> {
    return null;
  }

  async stageFolder(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<FolderSink> {
    signal.throwIfAborted();
    const { readBack } = this.#options;
    const common = await this.#commonOf(destination, key, signal, scratch);
    return await withOutputErrors(destination, async () =>
      StagedS3Folder.create({
        ...common,
        requestLimit: { requests: new Semaphore(MAX_FOLDER_REQUESTS), bytes: new Semaphore(MAX_REQUEST_BYTES) },
        committed: this.#committed,
        mirror: readBack ? await scratch.reserveFolder('output', sizeBytes) : null,
      }),
    );
  }

  async #commonOf(destination: string, key: StagingKey, signal: AbortSignal, { heartbeat }: ScratchSpace) {
    const writer = new S3Writer(await connectS3(this.#options.settings), markOf(key));
    const note = uploadNoteOf(this.#options.dataDir, destination, key);
    return { writer, at: parseS3Url(destination), note, buffers: new PartBufferPool(), heartbeat, signal };
  }
}

/** Interval of heartbeats while S3 completes an upload, which takes minutes for one of many parts. */
const HEARTBEAT_INTERVAL_MS = 30_000;

/** The parameters of a staged file in S3. */
interface S3FileStaging extends UploadContext {
  readonly sizeBytes: number;
  /** Scratch space for a copy of the output, when it is read back before the commit; null otherwise. */
  readonly scratch: ScratchFile | null;
}

/**
 * A file that goes to S3 as it is written: in one request where it is small, else as a multipart upload, which nobody
 * sees before it is completed. If the output is read back, its bytes are written to this host beside.
 */
class StagedS3File implements ByteSink {
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

  /** Commits the object. Ignores the signal once the last request is under way. */
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
    await rollBackNoted(writer, note);
  }
}
