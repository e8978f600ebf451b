import assert from 'node:assert/strict';
import type { ByteSink } from '#bytes/byte-sink.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { Config } from '#config/config.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { parseS3Url } from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { S3Writer } from '#s3/s3-writer.ts';
import { contentTypeOf } from './content-type.ts';
import { type Naming, s3Destination } from './output-path.ts';
import type { FolderSink, OutputSink } from './output-sink.ts';
import { CommittedObjects } from './s3/committed-objects.ts';
import { LARGEST_OBJECT_BYTES } from './s3/object-parts.ts';
import { RequestLimit } from './s3/object-upload.ts';
import { PartBufferPool } from './s3/part-buffers.ts';
import { markOf } from './s3/roll-back-uploads.ts';
import { ScratchMirror } from './s3/scratch-mirror.ts';
import { StagedS3File } from './s3/staged-s3-file.ts';
import { StagedS3Folder } from './s3/staged-s3-folder.ts';
import { UploadJournal } from './s3/upload-journal.ts';
import { withOutputErrors } from './staging/output-error.ts';

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
  readonly #journal: UploadJournal;
  readonly #committed: CommittedObjects;

  constructor(options: S3SinkOptions) {
    this.#options = options;
    this.#journal = new UploadJournal(options.dataDir);
    this.#committed = new CommittedObjects(options.dataDir);
  }

  namingOf(): Naming {
    return this.#options.settings.naming;
  }

  fileDestination(output: ApiOutputSpec | null, leaf: string): string {
    assert(output?.type === 's3', 'the sink was chosen by the output');
    return s3Destination(output, leaf, this.#options.settings.base_prefix);
  }

  folderDestination(output: ApiOutputSpec | null, leaf: string): string {
    return this.fileDestination(output, leaf);
  }

  async stageFile(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<ByteSink> {
    signal.throwIfAborted();
    if (sizeBytes > LARGEST_OBJECT_BYTES) {
      const problem = `it has ${sizeBytes} bytes, and an object of S3 at most ${LARGEST_OBJECT_BYTES}`;
      throw new AppError('OUTPUT_FAILED', { path: destination, problem });
    }
    const { readBack } = this.#options;
    const common = await this.#commonOf(destination, key, signal, scratch);
    return await withOutputErrors(destination, async () =>
      StagedS3File.create({
        ...common,
        sizeBytes,
        contentType: contentTypeOf(destination),
        requestLimit: new RequestLimit(MAX_FILE_REQUESTS, MAX_REQUEST_BYTES),
        scratch: readBack ? await scratch.reserve('output', sizeBytes) : null,
      }),
    );
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
        requestLimit: new RequestLimit(MAX_FOLDER_REQUESTS, MAX_REQUEST_BYTES),
        committed: this.#committed,
        mirror: readBack ? new ScratchMirror(await scratch.reserveFolder('output', sizeBytes)) : null,
      }),
    );
  }

  async #commonOf(destination: string, key: StagingKey, signal: AbortSignal, { heartbeat }: ScratchSpace) {
    const writer = new S3Writer(await connectS3(this.#options.settings), markOf(key));
    const note = this.#journal.noteOf(destination, key);
    return { writer, at: parseS3Url(destination), note, buffers: new PartBufferPool(), heartbeat, signal };
  }
}
