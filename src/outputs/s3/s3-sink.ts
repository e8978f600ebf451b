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
import { contentTypeOf } from '../content-type.ts';
import type { FolderSink } from '../folder-sink.ts';
import { translated } from '../output-error.ts';
import type { OutputSink } from '../output-sink.ts';
import { type Naming, s3Destination } from '../placement.ts';
import { DeliveredObjects } from './delivered-objects.ts';
import { LARGEST_OBJECT_BYTES } from './object-parts.ts';
import { PartMemory } from './part-memory.ts';
import { RequestSlots } from './request-slots.ts';
import { S3File } from './s3-file.ts';
import { S3Folder } from './s3-folder.ts';
import { ScratchMirror } from './scratch-mirror.ts';
import { markOf } from './settle-uploads.ts';
import { UploadJournal } from './upload-journal.ts';

/** Requests with bytes that one output has under way at once: parts of a file, or files of a publication. */
const FILE_REQUESTS_AT_ONCE = 4;
const FOLDER_REQUESTS_AT_ONCE = 16;
/**
 * What these hold in memory together: three parts of the usual size. With four, a film took 10 MB more, for the same processor time.
 * The parts of an object beyond 80 GB are larger, and go one by one in the end.
 */
const BYTES_AT_ONCE = 24 * 1024 * 1024;

/** The keys of `output_sinks.s3`. */
export type S3OutputSettings = NonNullable<Config['output_sinks']['s3']>;

interface S3SinkOptions {
  readonly settings: S3OutputSettings;
  /** Holds the notes of what is uploaded, and records of delivered publications. */
  readonly dataDir: string;
  /** Whether outputs are read back before they are delivered: then they lie on this host meanwhile. */
  readonly readBack: boolean;
}

/** Outputs as objects of a bucket: `s3://<bucket>/<base_prefix>/<prefix>/<name>/<leaf>`. */
export class S3Sink implements OutputSink {
  readonly #options: S3SinkOptions;
  readonly #journal: UploadJournal;
  readonly #delivered: DeliveredObjects;

  constructor(options: S3SinkOptions) {
    this.#options = options;
    this.#journal = new UploadJournal(options.dataDir);
    this.#delivered = new DeliveredObjects(options.dataDir);
  }

  namingOf(): Naming {
    return this.#options.settings.naming;
  }

  placeFile(output: ApiOutputSpec | null, leaf: string): string {
    assert(output?.type === 's3', 'the sink was chosen by the output');
    return s3Destination(output, leaf, this.#options.settings.base_prefix);
  }

  placeFolder(output: ApiOutputSpec | null, leaf: string): string {
    return this.placeFile(output, leaf);
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
    return await translated(destination, async () =>
      S3File.create({
        ...common,
        sizeBytes,
        contentType: contentTypeOf(destination),
        slots: new RequestSlots(FILE_REQUESTS_AT_ONCE, BYTES_AT_ONCE),
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
    return await translated(destination, async () =>
      S3Folder.create({
        ...common,
        slots: new RequestSlots(FOLDER_REQUESTS_AT_ONCE, BYTES_AT_ONCE),
        delivered: this.#delivered,
        mirror: readBack ? new ScratchMirror(await scratch.reserveFolder('output', sizeBytes)) : null,
      }),
    );
  }

  async #commonOf(destination: string, key: StagingKey, signal: AbortSignal, { signOfLife }: ScratchSpace) {
    const writer = new S3Writer(await connectS3(this.#options.settings), markOf(key));
    const note = this.#journal.noteOf(destination, key);
    return { writer, at: parseS3Url(destination), note, memory: new PartMemory(), signOfLife, signal };
  }
}
