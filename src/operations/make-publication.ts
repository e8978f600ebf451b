import { mkdir } from 'node:fs/promises';
import type { LocalCopies } from '#bytes/local-copies.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { packageMedia } from '#packaging/package-media.ts';
import type { PackagedFolder } from '#packaging/packaged-folder.ts';
import type { PackagingPlan } from '#packaging/planning/packaging-plan.ts';
import { planPackaging } from '#packaging/planning/plan-packaging.ts';
import { probeFolder } from '#packaging/probing/probe-folder.ts';
import { findProgram } from '#processes/find-program.ts';
import { matchingPaths } from '#publications/reading/path-patterns.ts';
import type { ChoicePatterns } from '#publications/repackaging/choose-renditions.ts';
import type { ExistingPublication } from '#publications/repackaging/existing-publication.ts';
import { findPublication } from '#publications/repackaging/find-publication.ts';
import { JoinedFolder } from '#publications/repackaging/joined-folder.ts';
import { refuseUnjoinable } from '#publications/repackaging/refuse-unjoinable.ts';
import { checkPackaged } from './check-packaged.ts';
import { defaultLanguageOf, describeFinding, oneTimeOf, tracksOfRenditions, unnamedFiles } from './existing-tracks.ts';
import { refuseWarnings } from './strict.ts';

/*
 * Making a publication out of a folder, as /v2/package and package-and-sign both do it:
 *
 *   const task = await planPublication(folder, params, NO_PATTERNS, signal);     // nothing is written yet
 *   if (task.kind === 'carry')      the folder is a publication of CMAF already: sign or copy its files as they are
 *   const sources = new LocalCopies(task.folder, context.scratch);               // what the packager reads
 *   const target = new PackagedFolder(task.folder.name, path);                   // `path`: an empty folder on this host
 *   const warnings = await makePublication(task, sources, target, context);      // `target` holds the publication then
 *   task.plan.streams               what became of which stream of which source file, and by which route
 *   task.folder                     where those source files are opened: the folder, or its segments joined to files
 *   task.plan.warnings, warnings    for the result
 *
 * A codec changes only where `route.packets` is `flac` (raw samples, losslessly), and where subtitles become WebVTT; all
 * else keeps its packets bit for bit.
 */

/** What is to be done with a folder. */
export type PublicationTask = CarryTask | PackagingTask;

/** The folder is a publication already, and stays as it is. */
export interface CarryTask {
  readonly kind: 'carry';
  readonly folder: SourceFolder;
  readonly existing: ExistingPublication;
}

/** The folder's media, or what its segments were cut from, are packaged. */
export interface PackagingTask {
  readonly kind: 'package';
  readonly folder: SourceFolder;
  readonly plan: PackagingPlan;
  readonly params: PackageParams;
  /** The publication that the folder is already, where its segments are made anew. */
  readonly existing: ExistingPublication | null;
}

/** What making a publication may use; an operation's context is most of one. */
export interface MakingContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  progress(bytesDone: number, bytesTotal: number): void;
  /** What is thrown where there is no room for the publication. */
  diskFull(freeBytes: number): AppError;
}

/** A context for a publication that is made in the scratch space. */
export function contextInScratch<Context extends Omit<MakingContext, 'diskFull'>>(
  context: Context,
  task: PackagingTask,
  { localPath: path }: PackagedFolder,
): Context & MakingContext {
  const neededBytes = sizeOfSources(task);
  return { ...context, diskFull: (freeBytes) => new AppError('SCRATCH_FULL', { path, neededBytes, freeBytes }) };
}

/**
 * Finds out what a folder holds and decides what becomes of it. `patterns` say which of its files are a publication;
 * what they leave open is found out.
 */
export async function planPublication(
  folder: SourceFolder,
  params: PackageParams,
  patterns: ChoicePatterns,
  signal: AbortSignal,
): Promise<PublicationTask> {
  const existing = await findPublication(folder, patterns, signal);
  if (existing === null) {
    return { ...(await planMedia(folder, params, unusedPatterns(folder, patterns), signal)), existing };
  }
  const { existing: wish = 'auto' } = params;
  if (wish === 'copy' || (wish === 'auto' && staysAsItIs(existing, folder))) {
    return { kind: 'carry', folder, existing };
  }
  refuseUnjoinable(existing, folder);
  const joined = new JoinedFolder(folder, existing);
  const tracks = tracksOfRenditions(existing, params.tracks ?? []);
  const language = params.default_language ?? defaultLanguageOf(existing);
  const wishes = { ...params, tracks, ...(language !== null && { default_language: language }) };
  const found = describeFinding(existing, 'repackaged', params);
  const warnings = [...found, ...existing.warnings, ...unnamedFiles(folder, existing, params)];
  return { ...(await planMedia(joined, wishes, warnings, signal, oneTimeOf(existing))), existing };
}

/**
 * What is as it would be packaged here stays; and byte ranges of what cannot be made anew, as of several periods or of
 * encrypted media: they can be signed, too.
 */
function staysAsItIs(existing: ExistingPublication, folder: SourceFolder): boolean {
  if (existing.segments !== 'byte-ranges') return existing.segments === 'cmaf';
  try {
    refuseUnjoinable(existing, folder);
    return false;
  } catch (error) {
    if (error instanceof AppError && error.reason === 'PUBLICATION_NOT_REPACKAGED') return true;
    throw error;
  }
}

/** A folder of media has no init segments and no fragments to choose from; a pattern that nothing matches is an error. */
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
  oneTime: ReadonlySet<string> = new Set(),
): Promise<Omit<PackagingTask, 'existing'>> {
  const probed = { ...(await probeFolder(folder, signal)), oneTime };
  const planned = planPackaging(probed, params, findProgram('ffmpeg') !== null);
  const plan = { ...planned, warnings: [...found, ...planned.warnings] };
  refuseWarnings(plan.warnings, params);
  return { kind: 'package', folder, plan, params };
}

/**
 * Carries out a plan in `target` and checks the result: every playlist parses and names only what is there, and nothing
 * of the film is missing. `wrote` is called with the path of every file as soon as it is whole, and listed in `target`.
 * Returns what there is to warn about.
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
  const made = await packageMedia(plan, sources, target.localPath, { ...context, wrote: tell });
  await target.complete();
  const doubts = [...made.warnings, ...(await checkPackaged(made.plan, target, signal))];
  refuseWarnings(doubts, params);
  if (!plan.formats.includes('hls')) await target.remove(/\.(?:m3u8|vtt)$/);
  for (const { path } of target.files) tell(path);
  return [...plan.warnings, ...doubts];
}

/** What the files that go into the output hold together, in bytes: the publication is about as large. */
export function sizeOfSources(task: PublicationTask): number {
  const used = task.kind === 'carry' ? task.existing.copied.paths : new Set(task.plan.streams.map(({ file }) => file));
  return task.folder.files.reduce((sum, { path, sizeBytes }) => sum + (used.has(path) ? sizeBytes : 0), 0);
}
