import type { ByteSink } from '#bytes/byte-sink.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import type { FolderSink } from './folder-sink.ts';
import type { Naming } from './placement.ts';

export type { StagingKey } from '#bytes/staged-name.ts';

/** A place that outputs are written to: the local file system, or a bucket. */
export interface OutputSink {
  /** How the leaf of a single-file output is named. */
  namingOf(output: ApiOutputSpec | null): Naming;
  /** The full destination of a single-file output, from the request's output and the safe leaf name. */
  placeFile(output: ApiOutputSpec | null, leaf: string): string;
  /**
   * Starts staging a file for a destination that `placeFile` returned. `sizeBytes` is its size, and checked against free
   * space. `scratch` takes what has to lie on this host while an output elsewhere is read back.
   */
  stageFile(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<ByteSink>;
  /** The full destination of a folder output; the leaf is the safe name of the input folder. */
  placeFolder(output: ApiOutputSpec | null, leaf: string): string;
  /** Starts staging a folder for a destination that `placeFolder` returned. `sizeBytes` is the sum of its files. */
  stageFolder(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<FolderSink>;
}
