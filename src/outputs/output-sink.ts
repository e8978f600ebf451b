import type { ByteSink, ByteWriter } from '#bytes/byte-sink.ts';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import type { Naming } from './output-path.ts';

export type { StagingKey } from '#bytes/staged-name.ts';

/** A destination of outputs: the local file system, or buckets. */
export interface OutputSink {
  /** Returns how the leaf of a single-file output is named. */
  namingOf(output: ApiOutputSpec | null): Naming;
  /** Returns the full destination of a single-file output, from the request's output and the safe leaf name. */
  fileDestination(output: ApiOutputSpec | null, leaf: string): string;
  /**
   * Starts staging a file for a destination that `fileDestination` returned. `sizeBytes` is its size, and checked against free
   * space. `scratch` takes what has to lie on this host while an output elsewhere is read back.
   */
  stageFile(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<ByteSink>;
  /** Returns the full destination of a folder output; the leaf is the safe name of the input folder. */
  folderDestination(output: ApiOutputSpec | null, leaf: string): string;
  /** Starts staging a folder for a destination that `folderDestination` returned. `sizeBytes` is the sum of its files. */
  stageFolder(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<FolderSink>;
}

/** A file of a folder that is being staged. */
export interface FolderPart extends ByteWriter {
  /**
   * Ends writing and hands the file over; making it durable may go on after this returns, and a failure of that is
   * thrown by a later call on the folder, `seal` at the latest. Safe to call again.
   */
  close(): Promise<void>;
}

/**
 * An output folder being staged: its files are written side by side, and nothing is seen at the destination before
 * `commit`.
 *
 * Obligations of every implementation (test/outputs/folder-sink-contract.ts runs them):
 * - `create` takes a path relative to the folder, segments separated by `/`, each path once; it makes the folders above
 *   the file. It may wait for earlier files to become durable, so that what is in flight stays bounded;
 * - `adopt`, where there is a `stagedPath`, makes a file part of the output that a program has written there, as if it had
 *   been created and closed; the program is done with it;
 * - `seal` makes all files and folders durable and ends writing; every part was closed before;
 * - `open` reads a file back as it was staged, after `seal`; the caller closes it;
 * - `commit` makes the publication appear at its destination, durably, or throws. What was there before is replaced
 *   whole when this service committed it; foreign files in it are kept;
 * - `discard` removes what was staged; it may be called at any time at which no other call is running, again, and after
 *   a failed commit.
 */
export interface FolderSink {
  /** The `output_path` of the result: an absolute path or `s3://bucket/prefix`. */
  readonly destination: string;
  /** The staged folder on this host, where the sink is local: programs may write files below it, which are then adopted. */
  readonly stagedPath?: string;
  create(path: string, signal: AbortSignal): Promise<FolderPart>;
  adopt?(path: string, signal: AbortSignal): Promise<void>;
  seal(signal: AbortSignal): Promise<void>;
  open(path: string, signal: AbortSignal): Promise<ByteSource>;
  commit(signal: AbortSignal): Promise<void>;
  discard(): Promise<void>;
}
