import assert from 'node:assert/strict';
import { lstatSync, type Stats } from 'node:fs';
import type { ByteSink, ByteWriter } from '#bytes/byte-sink.ts';
import type { ByteSource, LocalSource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { isS3Url } from '#s3/s3-address.ts';
import type { Naming } from './output-path.ts';

/** A destination of outputs: the local file system, or buckets. */
export interface OutputSink {
  /** Returns how the leaf of a single-file output is named. */
  namingOf(output: ApiOutputSpec | null): Naming;
  /** Returns the full destination of a file or a folder, from the request's output and the safe leaf name. */
  destinationOf(output: ApiOutputSpec | null, leaf: string): string;
  /**
   * Starts staging a file for a destination that `destinationOf` returned. `sizeBytes` is its size, and checked
   * against free space. `scratch` takes what has to lie on this host while an output elsewhere is read back.
   */
  stageFile(
    destination: string,
    sizeBytes: number,
    key: StagingKey,
    signal: AbortSignal,
    scratch: ScratchSpace,
  ): Promise<ByteSink>;
  /** Opens the file that stands at such a destination; null where there is none, or it is not on this host. */
  openFile(destination: string): Promise<LocalSource | null>;
  /** Starts staging a folder for such a destination. `sizeBytes` is the sum of its files. */
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
 * An output folder being staged: its files are written side by side, and nothing is seen at the
 * destination before `commit`.
 *
 * Obligations of every implementation (test/outputs/folder-sink-contract.ts runs them):
 * - `create` takes a path relative to the folder, segments separated by `/`, each path once; it makes
 *   the folders above the file. It may wait for earlier files to become durable, so that what is in
 *   flight stays bounded;
 * - `adopt`, where there is a `stagedPath`, makes a file part of the output that a program has written
 *   there, as if it had been created and closed; the program is done with it;
 * - `seal` makes all files and folders durable and ends writing; every part was closed before;
 * - `open` reads a file back as it was staged, after `seal`; the caller closes it;
 * - `commit` makes the publication appear at its destination, durably, or throws. A publication that was there before
 *   is replaced whole when this service committed it; foreign files in it are kept;
 * - `discard` removes what was staged; it may be called at any time at which no other call is running,
 *   again, and after a failed commit.
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

/** The types of outputs, as requests name them. */
export type OutputType = ApiOutputSpec['type'];

/** Returns the type of the output that has a path. */
export function outputTypeOf(outputPath: string): OutputType {
  return isS3Url(outputPath) ? 's3' : 'local';
}

/** Routes each output to the sink of its type. */
export class OutputRouter implements OutputSink {
  readonly #sinks: Readonly<Record<OutputType, OutputSink | null>>;

  /** Null stands for a type that the deployment does not have. */
  constructor(sinks: Readonly<Record<OutputType, OutputSink | null>>) {
    this.#sinks = sinks;
  }

  namingOf(output: ApiOutputSpec | null): Naming {
    return this.#sinkOf(output).namingOf(output);
  }

  destinationOf(output: ApiOutputSpec | null, leaf: string): string {
    return this.#sinkOf(output).destinationOf(output, leaf);
  }

  async stageFile(destination: string, ...staging: Staging<'stageFile'>): Promise<ByteSink> {
    return await this.#sinkOfType(outputTypeOf(destination)).stageFile(destination, ...staging);
  }

  async openFile(destination: string): Promise<LocalSource | null> {
    return await this.#sinkOfType(outputTypeOf(destination)).openFile(destination);
  }

  async stageFolder(destination: string, ...staging: Staging<'stageFolder'>): Promise<FolderSink> {
    return await this.#sinkOfType(outputTypeOf(destination)).stageFolder(destination, ...staging);
  }

  #sinkOf(output: ApiOutputSpec | null): OutputSink {
    return this.#sinkOfType(output?.type ?? 'local');
  }

  #sinkOfType(type: OutputType): OutputSink {
    const sink = this.#sinks[type];
    assert(sink !== null, `requests with outputs of the type ${type} are refused at admission`);
    return sink;
  }
}

type Staging<Method extends 'stageFile' | 'stageFolder'> =
  Parameters<OutputSink[Method]> extends [string, ...infer Rest] ? Rest : never;

const PLAYLIST = /\.(?:m3u8?|mpd)$/i;

/** Tells whether a file is a playlist: playlists are committed after everything that they may name. */
export function isPlaylist(path: string): boolean {
  return PLAYLIST.test(path);
}

/** Sorts playlists by depth, the deepest first: a multivariant playlist usually lies above those that it names. */
export function innermostPlaylistFirst(first: string, second: string): number {
  return second.split('/').length - first.split('/').length || (first < second ? -1 : 1);
}

const FULL_DISK_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

/** Translates a system error into an error about the destination. Returns any other error unchanged. */
export function outputError(destination: string, cause: unknown): unknown {
  if (!isSystemError(cause)) return cause;
  const reason = FULL_DISK_CODES.has(cause.code ?? '') ? 'OUTPUT_DISK_FILLED' : 'OUTPUT_FAILED';
  return new AppError(reason, { path: destination, problem: problemOf(cause) }, { cause });
}

/** Runs a step whose system errors are about `destination`. */
export async function withOutputErrors<T>(destination: string, step: () => Promise<T> | T): Promise<T> {
  try {
    return await step();
  } catch (error) {
    throw outputError(destination, error);
  }
}

/** Returns the entry at a path, without following links; null for none. */
export function entryAt(path: string): Stats | null {
  return lstatSync(path, { throwIfNoEntry: false }) ?? null;
}

/** Throws `OUTPUT_IS_FOLDER` when a folder exists at the destination of a file. */
export async function refuseFolder(destination: string, realDestination: string): Promise<void> {
  const existing = await withOutputErrors(destination, () => entryAt(realDestination));
  if (existing?.isDirectory()) throw new AppError('OUTPUT_IS_FOLDER', { path: destination });
}

/** Throws `OUTPUT_IS_FILE` when a file or link exists at the destination of a folder. */
export async function refuseFile(destination: string, realDestination: string): Promise<void> {
  const existing = await withOutputErrors(destination, () => entryAt(realDestination));
  if (existing !== null && !existing.isDirectory()) throw new AppError('OUTPUT_IS_FILE', { path: destination });
}
