import assert from 'node:assert/strict';
import type { ByteSink } from '#bytes/byte-sink.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { isS3Url } from '#s3/s3-address.ts';
import type { Naming } from './output-path.ts';
import type { FolderSink, OutputSink } from './output-sink.ts';

/** Routes each output to the local sink or to S3, as the request asks. */
export class OutputRouter implements OutputSink {
  readonly #local: OutputSink;
  readonly #s3: OutputSink | null;

  /** `s3` is null where the deployment has no such outputs. */
  constructor(local: OutputSink, s3: OutputSink | null) {
    this.#local = local;
    this.#s3 = s3;
  }

  namingOf(output: ApiOutputSpec | null): Naming {
    return this.#sinkOf(output).namingOf(output);
  }

  fileDestination(output: ApiOutputSpec | null, leaf: string): string {
    return this.#sinkOf(output).fileDestination(output, leaf);
  }

  folderDestination(output: ApiOutputSpec | null, leaf: string): string {
    return this.#sinkOf(output).folderDestination(output, leaf);
  }

  async stageFile(destination: string, ...staging: Staging<'stageFile'>): Promise<ByteSink> {
    return await this.#sinkAt(destination).stageFile(destination, ...staging);
  }

  async stageFolder(destination: string, ...staging: Staging<'stageFolder'>): Promise<FolderSink> {
    return await this.#sinkAt(destination).stageFolder(destination, ...staging);
  }

  #sinkOf(output: ApiOutputSpec | null): OutputSink {
    return output?.type === 's3' ? this.#requiredS3() : this.#local;
  }

  #sinkAt(destination: string): OutputSink {
    return isS3Url(destination) ? this.#requiredS3() : this.#local;
  }

  #requiredS3(): OutputSink {
    assert(this.#s3 !== null, 'requests with outputs to S3 are refused at admission');
    return this.#s3;
  }
}

type Staging<Method extends 'stageFile' | 'stageFolder'> =
  Parameters<OutputSink[Method]> extends [string, ...infer Rest] ? Rest : never;
