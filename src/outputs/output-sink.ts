import type { ByteSink } from '#bytes/byte-sink.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';

export type { StagingKey } from '#bytes/staged-name.ts';

/** A place that outputs are written to: the local file system, or a bucket. */
export interface OutputSink {
  /** The full destination of a single-file output, from the request's output and the safe leaf name. */
  placeFile(output: ApiOutputSpec | null, leaf: string): string;
  /** Starts staging a file for a destination that `placeFile` returned. `sizeBytes` is checked against free space. */
  stageFile(destination: string, sizeBytes: number, key: StagingKey, signal: AbortSignal): Promise<ByteSink>;
}
