import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { LocalSource } from '#bytes/byte-source.ts';
import { Descriptor } from '#bytes/file-source.ts';
import { spaceOf } from '#bytes/free-space.ts';
import type { LocalCopies } from '#bytes/local-copies.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { Box, BoxFields } from '#formats/isobmff-boxes.ts';
import { findProgram } from '#processes/find-program.ts';
import type { PackagingPlan, PlannedStream } from './packaging-plan.ts';
import { mediaEnd } from './planning/plan-warnings.ts';
import { feedRouteOf } from './planning/stream-routes.ts';
import { feedsOf, prepareFeed } from './programs/ffmpeg.ts';
import { type Program, runPrograms } from './programs/run-programs.ts';
import {
  findPackager,
  markDefaults,
  packagerError,
  type RoutedStream,
  SegmentWatcher,
  shakaArguments,
} from './programs/shaka-packager.ts';
import { writeSubtitles } from './subtitles/write-subtitles.ts';

/** Services and callbacks of a packaging run. */
interface PackagingContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  /** Called with the bytes of segments written so far, and of the sources that they are made from. */
  progress(bytesDone: number, bytesTotal: number): void;
  /** Called with the path of a segment, relative to the output, when it is complete, while others are still written. */
  wrote(path: string): void;
  /** Returns the error to throw where the disk of the output is full. */
  diskFull(freeBytes: number): AppError;
}

/** Result of a packaging run. */
interface PackagedMedia {
  /** The plan as it was carried out: without subtitles that turned out to be empty. */
  readonly plan: PackagingPlan;
  readonly warnings: readonly Warning[];
}

/**
 * Carries out a plan: the packager writes the publication into `target`, an empty folder on this host. If the packager
 * fails on a file before its first segment is complete, retries once with ffmpeg reading that file. Releases the sources
 * in any case. Throws `PACKAGER_FAILED`, `FEED_FAILED`, `SOURCE_CHANGED`, the limits of programs (`PROGRAM_…`), or what
 * `context.diskFull` returns.
 */
export async function packageMedia(
  plan: PackagingPlan,
  sources: LocalCopies,
  target: string,
  context: PackagingContext,
): Promise<PackagedMedia> {
  let hasSegments = false;
  const wrote = (path: string): void => {
    hasSegments = true;
    context.wrote(path);
  };
  try {
    return await new PackagingRun(plan, sources, target, { ...context, wrote }).run();
  } catch (error) {
    const fallback = hasSegments ? null : ffmpegFallback(plan, error);
    if (fallback === null) throw error;
    for (const name of await readdir(target)) await rm(join(target, name), { recursive: true });
    const retried = new PackagingRun(fallback.plan, sources, target, context).run();
    // If the fallback fails as well, the first failure says more about the file.
    const packaged = await retried.catch((second: unknown) =>
      Promise.reject(isProgramFailure(second) ? error : second),
    );
    return { ...packaged, warnings: [fallback.warning, ...packaged.warnings] };
  } finally {
    await sources.release();
  }
}

/**
 * Returns a plan in which ffmpeg remuxes the file that the packager failed on, with a warning. Null where the failure is
 * of another kind, ffmpeg is not installed, or it remuxed the file already.
 */
function ffmpegFallback(plan: PackagingPlan, error: unknown): { plan: PackagingPlan; warning: Warning } | null {
  if (!(error instanceof AppError) || error.reason !== 'PACKAGER_FAILED' || findProgram('ffmpeg') === null) return null;
  const { file, problem } = error.details as { file: string | null; problem: string };
  const isRerouted = (stream: PlannedStream): boolean =>
    stream.route.kind === 'direct' && (file === null || stream.file === file);
  const files = [...new Set(plan.streams.filter(isRerouted).map((stream) => stream.file))];
  if (files.length === 0) return null;
  const streams = plan.streams.map((stream) =>
    isRerouted(stream) ? { ...stream, route: feedRouteOf(stream.codec) } : stream,
  );
  return { plan: { ...plan, streams }, warning: warning('PACKAGER_BYPASSED', { files, problem }) };
}

function isProgramFailure(error: unknown): boolean {
  return error instanceof AppError && (error.reason === 'PACKAGER_FAILED' || error.reason === 'FEED_FAILED');
}

/**
 * The output folder as programs see it. On Linux they inherit its descriptor as number 3, so that they write to the folder
 * that was checked, even if its path is replaced meanwhile. Null elsewhere, where they use the path.
 */
const INHERITED_OUTPUT = process.platform === 'linux' ? '/proc/self/fd/3' : null;

/** A program that failed on a disk with less free space than this is taken to have failed for it. */
const DISK_FULL_THRESHOLD_BYTES = 1024 * 1024;

/** Name of the link to the output folder, in the folder where programs run. */
const OUTPUT_LINK = 'output';

class PackagingRun {
  readonly #plan: PackagingPlan;
  readonly #copies: LocalCopies;
  readonly #target: string;
  readonly #context: PackagingContext;
  readonly #sources = new Map<string, LocalSource>();
  /** Source files by the names under which programs read them. */
  readonly #names = new Map<string, string>();

  constructor(plan: PackagingPlan, copies: LocalCopies, target: string, context: PackagingContext) {
    this.#plan = plan;
    this.#copies = copies;
    this.#target = target;
    this.#context = context;
  }

  async run(): Promise<PackagedMedia> {
    const { signal, scratch } = this.#context;
    const work = await scratch.reserveFolder('packaging', 0);
    const output = Descriptor.open(this.#target, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      const links = await this.#linkSources(work.path);
      const { streams, programs } = await this.#prepareInputs(work.path, links);
      await this.#runPackager(streams, programs, work.path, output);
      for (const source of this.#sources.values()) await source.checkUnchanged?.(signal);
      await markDefaults(join(this.#target, this.#plan.hlsName), this.#plan);
      for (const { stream } of streams) {
        if (stream.rotation !== 0) await writeRotation(join(this.#target, stream.folder, 'init.mp4'), stream.rotation);
      }
      return this.#result(streams);
    } finally {
      await output.close();
      work.release();
    }
  }

  #result(packaged: readonly RoutedStream[]): PackagedMedia {
    const streams = packaged.map(({ stream }) => stream);
    const empty = this.#plan.streams.filter((stream) => !streams.includes(stream));
    const warnings = empty.map(({ file, language }) => warning('SUBTITLES_EMPTY', { file, language }));
    return { plan: { ...this.#plan, streams }, warnings };
  }

  /**
   * Links every file and the output under plain names, because names from outside may hold commas, which separate fields
   * in the packager's arguments. Programs run in the folder of the links, so that its own path is in no argument either.
   */
  async #linkSources(work: string): Promise<Map<string, string>> {
    const { signal } = this.#context;
    const links = new Map<string, string>();
    await symlink(INHERITED_OUTPUT ?? this.#target, join(work, OUTPUT_LINK));
    for (const { file } of this.#plan.streams) {
      if (links.has(file)) continue;
      const source = await this.#copies.of(file, signal);
      this.#sources.set(file, source);
      const link = `source-${links.size}`;
      await symlink(source.localPath, join(work, link));
      links.set(file, link);
      this.#names.set(link, file);
    }
    return links;
  }

  /** Prepares everything that the packager reads: named pipes with the programs that feed them, WebVTT files, and links. */
  async #prepareInputs(
    work: string,
    links: ReadonlyMap<string, string>,
  ): Promise<{ streams: RoutedStream[]; programs: Program[] }> {
    const linkOf = (file: string): string => links.get(file) as string;
    const inputs = new Map<PlannedStream, RoutedStream['input']>();
    const programs: Program[] = [];
    for (const [index, feed] of feedsOf(this.#plan.streams).entries()) {
      const fifo = `feed-${index}`;
      programs.push(await prepareFeed(feed, linkOf(feed.file), work, fifo));
      this.#names.set(fifo, feed.file);
      for (const [position, stream] of feed.streams.entries()) {
        inputs.set(stream, { path: fifo, selector: selectorOf(stream, feed.streams, position) });
      }
    }
    for (const [index, stream] of this.#plan.streams.filter(({ kind }) => kind === 'text').entries()) {
      const path = `text-${index}.vtt`;
      if (await this.#writeText(stream, linkOf(stream.file), work, path))
        inputs.set(stream, { path, selector: 'text' });
    }
    for (const stream of this.#plan.streams) {
      if (stream.route.kind !== 'direct') continue;
      const siblings = this.#plan.streams.filter(({ file, kind }) => file === stream.file && kind !== 'text');
      inputs.set(stream, { path: linkOf(stream.file), selector: selectorOf(stream, siblings, stream.streamIndex) });
    }
    const streams = this.#plan.streams.flatMap((stream) => {
      const input = inputs.get(stream);
      return input === undefined ? [] : [{ stream, input }];
    });
    return { streams, programs };
  }

  /** Writes subtitles to `path` in the folder `work`. Returns whether there are any. */
  async #writeText(stream: PlannedStream, link: string, work: string, path: string): Promise<boolean> {
    const endSeconds = mediaEnd(this.#plan.streams);
    const { signal } = this.#context;
    const source = this.#sources.get(stream.file) as LocalSource;
    this.#names.set(path, stream.file);
    return await writeSubtitles(stream, { source, link }, path, { endSeconds, folder: work, signal });
  }

  async #runPackager(
    streams: readonly RoutedStream[],
    feeds: readonly Program[],
    work: string,
    output: Descriptor,
  ): Promise<void> {
    const { signal, progress } = this.#context;
    const totalBytes = [...this.#sources.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const watcher = new SegmentWatcher(this.#plan, this.#target, this.#context.wrote);
    const packager: Program = {
      title: 'The packager',
      path: findPackager(),
      args: shakaArguments(this.#plan, streams, OUTPUT_LINK),
      failure: (exit) => this.#diskFull() ?? packagerError(exit, this.#names),
    };
    // The packager makes folders by itself, but reports no useful error where it cannot.
    for (const { stream } of streams) await mkdir(join(this.#target, stream.folder), { recursive: true });
    await runPrograms([packager, ...feeds], {
      folder: work,
      signal,
      inherited: INHERITED_OUTPUT === null ? [] : [output.number],
      poll: () => {
        const bytes = watcher.poll();
        progress(Math.min(bytes, totalBytes), totalBytes);
        return bytes;
      },
    });
  }

  /** Returns the error of a full disk, null where there is space: the packager reports only that it could not write. */
  #diskFull(): AppError | null {
    const { freeBytes } = spaceOf(this.#target) ?? { freeBytes: Number.POSITIVE_INFINITY };
    return freeBytes > DISK_FULL_THRESHOLD_BYTES ? null : this.#context.diskFull(freeBytes);
  }
}

/** Returns how the packager selects a stream: by its kind where that is unique in the file, else by its number. */
function selectorOf({ kind }: PlannedStream, siblings: readonly PlannedStream[], index: number): string {
  return siblings.filter((sibling) => sibling.kind === kind).length === 1 ? kind : String(index);
}

/** One, in the 16.16 fixed point of a matrix; its last number has 2.30 (ISO/IEC 14496-12 §6.2.2). */
const ONE = 0x10000;
const LAST = 0x40000000;

/** Matrices that rotate a picture clockwise, by degrees: `a b u c d v x y w`, without a translation, which players ignore. */
const ROTATIONS: Readonly<Record<number, readonly number[]>> = {
  90: [0, ONE, 0, -ONE, 0, 0, 0, 0, LAST],
  180: [-ONE, 0, 0, 0, -ONE, 0, 0, 0, LAST],
  270: [0, -ONE, 0, ONE, 0, 0, 0, 0, LAST],
};

/**
 * Writes the rotation of the picture into the track header of an init segment (ISO/IEC 14496-12 §8.3.2), which the
 * packager does not carry over. `degrees` is a multiple of 90, clockwise.
 */
async function writeRotation(initPath: string, degrees: number): Promise<void> {
  const matrix = ROTATIONS[degrees];
  assert(matrix !== undefined, 'pictures are rotated by quarter turns');
  const bytes = await readFile(initPath);
  const header = { type: 'file', offset: 0, sizeBytes: bytes.length, headerSizeBytes: 0, sizeForm: 'compact' } as const;
  for (const tkhd of new Box(initPath, header, bytes).descendants('moov', 'trak', 'tkhd')) {
    const { version } = new BoxFields(tkhd).versionAndFlags();
    // Times, track ID and duration are wider in version 1; layer, group and volume follow.
    const at = tkhd.header.headerSizeBytes + 4 + (version === 1 ? 32 : 20) + 16;
    for (const [index, value] of matrix.entries()) tkhd.bytes.writeInt32BE(value, at + 4 * index);
  }
  await writeFile(initPath, bytes);
}
