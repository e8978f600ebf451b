import { mkdir } from 'node:fs/promises';
import type { LocalCopies } from '#bytes/local-copies.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { sampleOfNames } from '#errors/entry.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { sourceNameOf } from '#outputs/output-path.ts';
import { packageMedia } from '#packaging/package-media.ts';
import type { PackagedFolder } from '#packaging/packaged-folder.ts';
import type { PackagingPlan, PlannedStream } from '#packaging/packaging-plan.ts';
import { planPackaging } from '#packaging/plan-packaging.ts';
import { probeFolder } from '#packaging/probe-folder.ts';
import { findProgram } from '#processes/find-program.ts';
import type { ExistingPublication } from '#publications/existing-publication.ts';
import { type ChoicePatterns, findPublication } from '#publications/find-publication.ts';
import { JoinedFolder } from '#publications/joined-folder.ts';
import { matchingPaths } from '#publications/path-patterns.ts';
import type { HlsMedia } from '#publications/publication.ts';
import { type PublicationFolder, publicationFolder } from '#publications/publication-folder.ts';
import { readPublication } from '#publications/read-publication.ts';
import { refuseUnjoinable } from '#publications/refuse-unjoinable.ts';
import { refuseWarnings } from '../refuse-warnings.ts';
import {
  defaultLanguageOf,
  publicationFoundWarning,
  sharedTimelineOf,
  tracksOfRenditions,
  unnamedFiles,
} from './existing-tracks.ts';

/*
 * Packaging of a folder, as used by package-folder and package-and-sign:
 *
 *   const task = await planPublication(folder, params, NO_PATTERNS, signal);     // nothing is written yet
 *   if (task.kind === 'carry')      the folder is a publication of CMAF already: sign or copy its files as they are
 *   const sources = new LocalCopies(task.folder, context.scratch);               // files for the packager
 *   const target = new PackagedFolder(task.folder.name, path);                   // `path`: an empty folder on this host
 *   const warnings = await makePublication(task, sources, target, context);      // `target` holds the publication then
 *   task.plan.streams               the rendition and the route of every stream of every source file
 *   task.folder                     the folder with those source files, or its segments joined to files
 *   task.plan.warnings, warnings    for the result
 *
 * A codec changes only where `route.packets` is `flac` (raw samples, losslessly), and where subtitles become WebVTT; all
 * else keeps its packets bit for bit.
 */

/** Task for a folder. */
type PublicationTask = CarryTask | PackagingTask;

/** Task to keep a folder that is a publication already. */
export interface CarryTask {
  readonly kind: 'carry';
  readonly folder: SourceFolder;
  readonly existing: ExistingPublication;
}

/** Task to package the media of a folder, or the files that the segments of its publication are joined to. */
export interface PackagingTask {
  readonly kind: 'package';
  readonly folder: SourceFolder;
  readonly plan: PackagingPlan;
  readonly params: PackageParams;
  /** Publication in the folder that is repackaged; null for media files. */
  readonly existing: ExistingPublication | null;
}

/** Services and callbacks for packaging a publication. */
interface MakingContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  progress(bytesDone: number, bytesTotal: number): void;
  /** Returns the error to throw where the disk is full. */
  diskFull(freeBytes: number): AppError;
}

/** Returns the context for packaging in the scratch space, whose full disk is `SCRATCH_FULL`. */
export function contextInScratch<Context extends Omit<MakingContext, 'diskFull'>>(
  context: Context,
  task: PackagingTask,
  { localPath: path }: PackagedFolder,
): Context & MakingContext {
  const neededBytes = sizeOfSources(task);
  const details = { path, neededBytes, reservedBytes: 0 };
  return { ...context, diskFull: (freeBytes) => new AppError('SCRATCH_FULL', { ...details, freeBytes }) };
}

/**
 * Returns the folder with only those files that the request includes. Throws `PATTERN_NO_MATCH` where a pattern matches
 * none, and `PATTERN_INVALID`.
 */
export function includedFiles(folder: SourceFolder, { include }: Pick<PackageParams, 'include'>): PublicationFolder {
  if (include === undefined) return publicationFolder(folder);
  const paths = folder.files.map(({ path }) => path);
  const included = new Set(
    include.flatMap((pattern, index) => [...matchingPaths(paths, pattern, `params.include[${index}]`)]),
  );
  const { name, files, baseUrl } = folder;
  return publicationFolder({
    name,
    files: files.filter(({ path }) => included.has(path)),
    ...(baseUrl !== undefined && { baseUrl }),
    open: (path, signal) => folder.open(path, signal),
  });
}

/**
 * Probes a folder and plans its publication. `patterns` choose the files of an existing publication; files that they do
 * not choose are detected. Throws the errors of `planPackaging`, and `PACKAGING_WARNED` for a strict request.
 */
export async function planPublication(
  folder: PublicationFolder,
  params: PackageParams,
  patterns: ChoicePatterns,
  signal: AbortSignal,
): Promise<PublicationTask> {
  const existing = await findPublication(folder, patterns, signal);
  if (existing === null) {
    const { sources, warnings } = withoutSignedCopies(folder, params);
    const found = [...unusedPatterns(folder, patterns), ...warnings];
    return { ...(await planMedia(sources, params, found, signal)), existing };
  }
  const { existing: wish = 'auto' } = params;
  if (wish === 'copy' || (wish === 'auto' && staysAsItIs(existing))) {
    return { kind: 'carry', folder, existing };
  }
  refuseUnjoinable(existing);
  const joined = new JoinedFolder(folder, existing);
  const tracks = tracksOfRenditions(existing, params.tracks ?? []);
  const language = params.default_language ?? defaultLanguageOf(existing);
  const wishes = { ...params, tracks, ...(language !== null && { default_language: language }) };
  const found = publicationFoundWarning(existing, 'repackaged', params);
  const warnings = [...found, ...existing.warnings, ...unnamedFiles(folder, existing, params)];
  return { ...(await planMedia(joined, wishes, warnings, signal, sharedTimelineOf(existing))), existing };
}

/**
 * Returns whether a publication stays as it is: one of CMAF segments, or one of byte ranges that cannot be repackaged,
 * such as several periods or encrypted media, but can be signed.
 */
function staysAsItIs(existing: ExistingPublication): boolean {
  if (existing.segments !== 'byte-ranges') return existing.segments === 'cmaf';
  try {
    refuseUnjoinable(existing);
    return false;
  } catch (error) {
    if (error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED') return true;
    throw error;
  }
}

/**
 * Returns the folder without files that are named as signed copies of others in it, with a warning: they would be renditions of the same
 * media. The request may ask for them.
 */
function withoutSignedCopies(
  folder: SourceFolder,
  { include, tracks = [] }: PackageParams,
): { readonly sources: SourceFolder; readonly warnings: readonly Warning[] } {
  const paths = new Set(folder.files.map(({ path }) => path));
  const asked = new Set(tracks.map(({ file }) => file));
  const copies = new Set([...paths].filter((path) => paths.has(sourceNameOf(path) ?? '') && !asked.has(path)));
  if (include !== undefined || copies.size === 0) return { sources: folder, warnings: [] };
  const files = folder.files.filter(({ path }) => !copies.has(path));
  return { sources: { ...folder, files }, warnings: [warning('SIGNED_COPIES_LEFT_OUT', sampleOfNames([...copies]))] };
}

/** Warns about patterns for a folder of media, which has no fragments. Throws where a pattern matches no file. */
function unusedPatterns({ files }: SourceFolder, { init, frag }: ChoicePatterns): Warning[] {
  const paths = files.map(({ path }) => path);
  return Object.entries({ init_pattern: init, frag_pattern: frag }).flatMap(([name, pattern]) => {
    if (pattern === null) return [];
    const field = `params.${name}`;
    matchingPaths(paths, pattern, field);
    return [warning('PATTERN_NOT_USED', { field, pattern })];
  });
}

async function planMedia(
  folder: SourceFolder,
  params: PackageParams,
  found: readonly Warning[],
  signal: AbortSignal,
  sharedTimeline: ReadonlySet<string> = new Set(),
): Promise<Omit<PackagingTask, 'existing'>> {
  const probed = { ...(await probeFolder(folder, signal)), sharedTimeline };
  const planned = planPackaging(probed, params, findProgram('ffmpeg') !== null);
  const plan = { ...planned, warnings: [...found, ...planned.warnings] };
  refuseWarnings(plan.warnings, params);
  return { kind: 'package', folder, plan, params };
}

/**
 * Carries out a plan in `target` and checks the result: every playlist parses and names only existing files, and no part
 * of the media is missing. Calls `wrote` with the path of every file as soon as it is complete, and listed in `target`.
 * Returns the warnings. Throws the errors of `packageMedia` and `checkPackaged`, and `PACKAGING_WARNED`.
 */
export async function makePublication(
  { plan, params }: PackagingTask,
  sources: LocalCopies,
  target: PackagedFolder,
  context: MakingContext,
  wrote: (path: string) => void = () => undefined,
): Promise<readonly Warning[]> {
  const { signal } = context;
  const told = new Set<string>();
  const tell = (path: string): void => {
    if (told.has(path)) return;
    told.add(path);
    target.add(path);
    wrote(path);
  };
  await mkdir(target.localPath, { recursive: true });
  const packaged = await packageMedia(plan, sources, target.localPath, { ...context, wrote: tell });
  await target.complete();
  const doubts = [...packaged.warnings, ...(await checkPackaged(packaged.plan, target, signal))];
  refuseWarnings(doubts, params);
  if (!plan.formats.includes('hls')) await target.remove(/\.(?:m3u8|vtt)$/);
  for (const { path } of target.files) tell(path);
  return [...plan.warnings, ...doubts];
}

/** Returns the size of all files that are used, in bytes: the publication is about as large. */
export function sizeOfSources(task: PublicationTask): number {
  const used = task.kind === 'carry' ? task.existing.copied.paths : new Set(task.plan.streams.map(({ file }) => file));
  return task.folder.files.reduce((sum, { path, sizeBytes }) => sum + (used.has(path) ? sizeBytes : 0), 0);
}

/** Tolerated missing duration of a rendition, in seconds and as a fraction: sources round, and clips end early. */
const MAX_MISSING_SECONDS = 0.5;
const MAX_MISSING_FRACTION = 0.01;

/** Tolerated difference of the starts of aligned segments, in seconds. */
const ALIGNMENT_TOLERANCE_SECONDS = 0.1;

const PATTERNS = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.m4s' };

/**
 * Checks a packaged publication against its plan: every playlist parses and names only existing files, and every rendition
 * is as long as its source. Throws `PACKAGED_OUTPUT_INVALID` or `PACKAGED_CUT_SHORT`; returns warnings where renditions
 * do not align.
 */
async function checkPackaged(plan: PackagingPlan, folder: SourceFolder, signal: AbortSignal): Promise<Warning[]> {
  for (const stream of plan.streams) checkPresent(stream, folder);
  const { playlists } = await readPublication(publicationFolder(folder), PATTERNS, signal);
  const starts = plan.streams.map((stream) => {
    const playlist = playlists.find(({ path }) => path === `${stream.folder}/index.m3u8`);
    if (playlist?.kind !== 'hls-media') throw invalid(`${stream.folder}/index.m3u8`, 'it is missing');
    checkLength(stream, playlist);
    return { stream, starts: startsOf(playlist) };
  });
  const video = starts.filter(({ stream }) => stream.kind === 'video');
  const [first, ...others] = video;
  if (first === undefined) return [];
  const uneven = others.filter((other) => !isAligned(first.starts, other.starts));
  return uneven.map(({ stream }) =>
    warning('KEY_FRAMES_NOT_ALIGNED', { file: stream.file, otherFile: first.stream.file }),
  );
}

/** Refuses a missing rendition: the packager silently writes none for a stream without packets. */
function checkPresent(
  { file, kind, folder: rendition, durationSeconds }: PlannedStream,
  { files }: SourceFolder,
): void {
  if (kind === 'text' || files.some(({ path }) => path === `${rendition}/index.m3u8`)) return;
  throw new AppError('PACKAGED_CUT_SHORT', { file, kind, seconds: 0, expectedSeconds: durationSeconds ?? 0 });
}

function checkLength({ file, kind, durationSeconds, startSeconds }: PlannedStream, { segments }: HlsMedia): void {
  if (durationSeconds === null || kind === 'text') return;
  const seconds = segments.reduce((sum, segment) => sum + segment.durationSeconds, 0);
  const expectedSeconds = durationSeconds - Math.max(-startSeconds, 0);
  const missing = expectedSeconds - seconds;
  if (missing <= Math.max(MAX_MISSING_SECONDS, expectedSeconds * MAX_MISSING_FRACTION)) return;
  throw new AppError('PACKAGED_CUT_SHORT', { file, kind, seconds, expectedSeconds });
}

/** Returns the starts of segments, in seconds from the first. */
function startsOf({ segments }: HlsMedia): number[] {
  let at = 0;
  return segments.map(({ durationSeconds }) => {
    const start = at;
    at += durationSeconds;
    return start;
  });
}

function isAligned(first: readonly number[], second: readonly number[]): boolean {
  const count = Math.min(first.length, second.length);
  if (Math.abs(first.length - second.length) > 1) return false;
  return first
    .slice(0, count)
    .every((start, index) => Math.abs(start - itemAt(second, index)) <= ALIGNMENT_TOLERANCE_SECONDS);
}

function invalid(file: string, problem: string): AppError {
  return new AppError('PACKAGED_OUTPUT_INVALID', { file, problem });
}
