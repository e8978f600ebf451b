import { execFile } from 'node:child_process';
import { constants, statfsSync } from 'node:fs';
import { mkdir, readdir, rm, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Descriptor } from '#bytes/descriptor.ts';
import type { LocalCopies } from '#bytes/local-copies.ts';
import type { LocalSource } from '#bytes/scratch-copy.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { findProgram } from '#processes/find-program.ts';
import { detourOf, isDeadEnd } from './detour.ts';
import type { PackagingPlan, PlannedStream } from './planning/packaging-plan.ts';
import { mediaEnd } from './planning/plan-warnings.ts';
import { turnPicture } from './planning/turn-picture.ts';
import { type Feed, feedArguments, feedsOf } from './programs/feed-arguments.ts';
import { OutputWatch } from './programs/output-watch.ts';
import { feedError, packagerError } from './programs/program-errors.ts';
import { findPackager } from './programs/program-paths.ts';
import { type Program, runPrograms } from './programs/run-programs.ts';
import { type ReadStream, shakaArguments } from './programs/shaka-arguments.ts';
import { writeSubtitles } from './subtitles/write-subtitles.ts';

/** What packaging may use, and tells. An operation's context is most of one. */
export interface PackagingContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  /** Called with the bytes of segments written so far, and of the sources that they are made from. */
  progress(bytesDone: number, bytesTotal: number): void;
  /** Called with the path of a segment, relative to the output, when it is whole while others are still made. */
  wrote(path: string): void;
  /** What is thrown where there is no room for the output. */
  diskFull(freeBytes: number): AppError;
}

/**
 * The path to the output folder for programs. On Linux they inherit it open, as the number 3, so that they write to the
 * folder that was checked, whatever stands at its path meanwhile. Null elsewhere: there they go by the path.
 */
const INHERITED_OUTPUT = process.platform === 'linux' ? '/proc/self/fd/3' : null;

/** What was packaged. */
export interface PackagedMedia {
  /** The plan as it was carried out: without subtitles that turned out to hold none. */
  readonly plan: PackagingPlan;
  readonly warnings: readonly Warning[];
}

/**
 * Carries out a plan: the packager writes the publication into `target`, an empty folder on this host. What the packager
 * gives up before a segment was told of is tried once more by way of ffmpeg. The sources are released at the end.
 */
export async function packageMedia(
  plan: PackagingPlan,
  sources: LocalCopies,
  target: string,
  context: PackagingContext,
): Promise<PackagedMedia> {
  let isBegun = false;
  const wrote = (path: string): void => {
    isBegun = true;
    context.wrote(path);
  };
  try {
    return await new PackagingRun(plan, sources, target, { ...context, wrote }).run();
  } catch (error) {
    const detour = isBegun ? null : detourOf(plan, error);
    if (detour === null) throw error;
    for (const name of await readdir(target)) await rm(join(target, name), { recursive: true });
    const detoured = new PackagingRun(detour.plan, sources, target, context).run();
    const made = await detoured.catch((second: unknown) => Promise.reject(isDeadEnd(second) ? error : second));
    return { ...made, warnings: [detour.warning, ...made.warnings] };
  } finally {
    await sources.release();
  }
}

/** A disk with less room, in bytes, is taken to be full when a program fails. */
const FULL_DISK_BYTES = 1024 * 1024;

/** What programs call the output. */
const OUTPUT_LINK = 'output';

class PackagingRun {
  readonly #plan: PackagingPlan;
  readonly #copies: LocalCopies;
  readonly #target: string;
  readonly #context: PackagingContext;
  readonly #sources = new Map<string, LocalSource>();
  /** Files by the names that programs read them at. */
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
      const { streams, programs } = await this.#prepare(work.path, links);
      await this.#runPackager(streams, programs, work.path, output);
      for (const source of this.#sources.values()) await source.checkUnchanged?.(signal);
      for (const { stream } of streams) await this.#turn(stream);
      return this.#made(streams);
    } finally {
      await output.close();
      work.release();
    }
  }

  #made(read: readonly ReadStream[]): PackagedMedia {
    const streams = read.map(({ stream }) => stream);
    const empty = this.#plan.streams.filter((stream) => !streams.includes(stream));
    const warnings = empty.map(({ file, language }) => warning('SUBTITLES_EMPTY', { file, language }));
    return { plan: { ...this.#plan, streams }, warnings };
  }

  /**
   * A link of a plain name to every file and to the output: names from outside may hold commas, which mean something to the
   * packager. Programs run in the folder of the links, so that not even its own path is told to them.
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

  /** What the packager reads, and the programs that feed it. */
  async #prepare(
    work: string,
    links: ReadonlyMap<string, string>,
  ): Promise<{ streams: ReadStream[]; programs: Program[] }> {
    const linkOf = (file: string): string => links.get(file) as string;
    const inputs = new Map<PlannedStream, { path: string; selector: string }>();
    const programs: Program[] = [];
    for (const [index, feed] of feedsOf(this.#plan.streams).entries()) {
      const fifo = `feed-${index}`;
      programs.push(await this.#feed(feed, linkOf(feed.file), work, fifo));
      for (const [position, stream] of feed.streams.entries()) {
        inputs.set(stream, { path: fifo, selector: selectorOf(stream, feed.streams, position) });
      }
    }
    const texts = this.#plan.streams.filter(({ kind }) => kind === 'text');
    const endSeconds = mediaEnd(this.#plan.streams);
    for (const [index, stream] of texts.entries()) {
      const path = `text-${index}.vtt`;
      const input = { source: this.#sources.get(stream.file) as LocalSource, link: linkOf(stream.file) };
      const isThere = await writeSubtitles(stream, input, path, {
        endSeconds,
        folder: work,
        signal: this.#context.signal,
      });
      if (isThere) inputs.set(stream, { path, selector: 'text' });
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

  async #feed(feed: Feed, input: string, work: string, fifo: string): Promise<Program> {
    const path = findProgram('ffmpeg');
    const mkfifo = findProgram('mkfifo');
    if (path === null || mkfifo === null) throw new AppError('PACKAGING_FFMPEG_MISSING', { files: [feed.file] });
    await promisify(execFile)(mkfifo, ['-m', '600', join(work, fifo)]).catch((cause: unknown) => {
      throw new AppError(
        'SCRATCH_UNUSABLE',
        { path: work, problem: 'its file system takes no named pipes' },
        { cause },
      );
    });
    this.#names.set(fifo, feed.file);
    return {
      title: 'ffmpeg',
      path,
      args: feedArguments(feed, input, fifo),
      failure: (end) => feedError(end, feed.file),
    };
  }

  async #runPackager(
    streams: readonly ReadStream[],
    feeds: readonly Program[],
    work: string,
    output: Descriptor,
  ): Promise<void> {
    const { signal, progress } = this.#context;
    const totalBytes = [...this.#sources.values()].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const watch = new OutputWatch(this.#plan, this.#target, this.#context.wrote);
    const packager: Program = {
      title: 'The packager',
      path: findPackager(),
      args: shakaArguments(this.#plan, streams, OUTPUT_LINK),
      failure: (end) => this.#diskFull() ?? packagerError(end, this.#names),
    };
    await makeFolders(streams, this.#target);
    await runPrograms([packager, ...feeds], {
      folder: work,
      signal,
      inherited: INHERITED_OUTPUT === null ? [] : [output.number],
      look: () => {
        const bytes = watch.look();
        progress(Math.min(bytes, totalBytes), totalBytes);
        return bytes;
      },
    });
  }

  async #turn({ folder, rotation }: PlannedStream): Promise<void> {
    if (rotation !== 0) await turnPicture(join(this.#target, folder, 'init.mp4'), rotation);
  }

  /** The packager says of a full disk only that a file could not be written. */
  #diskFull(): AppError | null {
    const { blocks, bavail, bsize } = statfsSync(this.#target);
    if (blocks === 0 || bavail * bsize > FULL_DISK_BYTES) return null;
    return this.#context.diskFull(bavail * bsize);
  }
}

/** A stream by its kind where that says which, else by its number. */
function selectorOf({ kind }: PlannedStream, siblings: readonly PlannedStream[], index: number): string {
  return siblings.filter((sibling) => sibling.kind === kind).length === 1 ? kind : String(index);
}

/** The packager makes folders by itself, but says nothing useful where it cannot. */
async function makeFolders(streams: readonly ReadStream[], target: string): Promise<void> {
  for (const { stream } of streams) await mkdir(join(target, stream.folder), { recursive: true });
}
