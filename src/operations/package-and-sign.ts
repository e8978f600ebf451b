import { LocalCopies } from '#bytes/local-copies.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { C2paPackageParams } from '#contract/c2pa-requests.ts';
import type { Warning } from '#errors/warning.ts';
import { PackagedFolder } from '#packaging/packaged-folder.ts';
import { type PackagingPlan, type PlannedStream, playlistPathsOf } from '#packaging/packaging-plan.ts';
import { pathsInPlaylists } from '#publications/existing-publication.ts';
import type { ChoicePatterns } from '#publications/find-publication.ts';
import { growingTaskOf } from '#publications/growing-publication.ts';
import { type MatchedPaths, matchingPaths } from '#publications/path-patterns.ts';
import type { PublicationFolder } from '#publications/publication-folder.ts';
import { readMatchedPublication } from '#publications/read-publication.ts';
import type { SigningTask } from '#publications/signing-task.ts';
import { givenOrigin } from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from './operation.ts';
import { growthOf, publicationFoundWarning, unsignedFragments } from './packaging/existing-tracks.ts';
import {
  contextInScratch,
  includedFiles,
  makePublication,
  type PackagingTask,
  planPublication,
  sizeOfSources,
} from './packaging/make-publication.ts';
import { existingOrigin, packagedOrigin } from './packaging/packaging-ingredients.ts';
import { refuseWarnings } from './refuse-warnings.ts';
import {
  reserveDestination,
  signForInput,
  signReadPublication,
  verificationContext,
} from './sign-fragmented-folder.ts';

/** One input with everything that packaging and signing it needs. */
interface PackageInput {
  readonly folder: PublicationFolder;
  readonly params: C2paPackageParams;
  readonly work: InputWork;
  readonly context: InputContext;
  readonly services: OperationServices;
}

/**
 * Packages a folder of media as HLS and DASH over the same segments, and signs the publication. A folder that is a
 * publication of CMAF already is signed as it is.
 */
export async function packageAndSignFolder(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const params = work.params as C2paPackageParams;
  const { playlist_pattern: playlistPattern } = params;
  const folder = await services.inputs.openFolder(work.input, work.inputIndex, {
    ...context,
    ...(typeof playlistPattern === 'string' && { playlistPattern }),
  });
  return await packageOrSign({ folder: includedFiles(folder, params), params, work, context, services });
}

async function packageOrSign(input: PackageInput): Promise<InputOutcome> {
  const { folder, params, context } = input;
  const chosen = chosenPaths(folder, params);
  if (chosen !== null) return await signExisting(chosen, [], input);
  const task = await planPublication(folder, params, patternsOf(params), context.signal);
  if (task.kind === 'package') return await packageThenSign(task, input);
  const found = filesToSign(folder, params, pathsInPlaylists(task.existing.playlists));
  const isChosen = typeof params.frag_pattern === 'string';
  const unsigned = isChosen ? [] : unsignedFragments(folder, new Set([...found.fragments, ...found.inits]));
  const warnings = [
    ...publicationFoundWarning(task.existing, 'signed', params),
    ...growthOf(task.existing),
    ...unsigned,
  ];
  return await signExisting(found, warnings, input);
}

function patternsOf(params: C2paPackageParams): ChoicePatterns {
  const { playlist_pattern: playlist = null, init_pattern: init = null, frag_pattern: frag = null } = params;
  return { playlist, init, frag };
}

/** Returns the init segments and fragments that patterns choose in a folder without playlists; null for other folders. */
function chosenPaths(folder: SourceFolder, params: C2paPackageParams): MatchedPaths | null {
  const { playlist_pattern: playlist, init_pattern: init, frag_pattern: frag } = params;
  const isPlayed = folder.files.some(({ path }) => /\.(?:m3u8|mpd)$/i.test(path));
  if (isPlayed || typeof playlist === 'string' || typeof init !== 'string' || typeof frag !== 'string') return null;
  return filesToSign(folder, params, { playlists: new Set(), inits: new Set(), fragments: new Set() });
}

/** Returns the files of a publication that are signed: by the patterns, or as detected where there is no pattern. */
function filesToSign(folder: SourceFolder, params: C2paPackageParams, found: MatchedPaths): MatchedPaths {
  const paths = folder.files.map(({ path }) => path);
  const { init_pattern: init, frag_pattern: frag } = params;
  return {
    playlists: found.playlists,
    inits: typeof init === 'string' ? matchingPaths(paths, init, 'params.init_pattern') : found.inits,
    fragments: typeof frag === 'string' ? matchingPaths(paths, frag, 'params.frag_pattern') : found.fragments,
  };
}

/** Signs a folder that is a publication already. */
async function signExisting(
  paths: MatchedPaths,
  found: readonly Warning[],
  { folder, params, work, context, services }: PackageInput,
): Promise<InputOutcome> {
  refuseWarnings(found, params);
  const publication = await readMatchedPublication(folder, paths, context.signal);
  const { warnings, ...outcome } = await signReadPublication(folder, publication, work, context, services);
  return { ...outcome, warnings: [...found, ...warnings] };
}

/**
 * Packages into scratch, from where the signed publication is written: every segment is read once more, from memory where
 * there is enough of it, and only what is signed is made durable.
 */
async function packageThenSign(
  task: PackagingTask,
  { folder, params, work, context, services }: PackageInput,
): Promise<InputOutcome> {
  const destination = await reserveDestination(folder, work, context, services);
  const sources = new LocalCopies(task.folder, context.scratch);
  const scratch = await context.scratch.reserveFolder('packaged', sizeOfSources(task));
  try {
    const given = await givenOrigin(params, work.inputIndex, services, context);
    const origin =
      task.existing === null
        ? await packagedOrigin(task, sources, given, context)
        : await existingOrigin(folder, task.existing, task, sources, given, verificationContext(context, services));
    const target = new PackagedFolder(task.folder.name, scratch.path);
    const [packaging, signing] = halvesOf(context);
    const signingTask = packagingTaskOf(task, sources, target, packaging);
    return await signForInput(signingTask, { ...origin, destination }, work, signing, services);
  } finally {
    await sources.release();
    scratch.release();
  }
}

/** Returns the contexts of two steps that run concurrently, each of which is half of the work. */
function halvesOf(context: InputContext): [InputContext, InputContext] {
  const doneBytes = [0, 0];
  const half = (index: number): InputContext => ({
    ...context,
    progress: (bytes, bytesTotal) => {
      doneBytes[index] = bytes;
      context.progress(
        doneBytes.reduce((sum, done) => sum + done),
        2 * bytesTotal,
      );
    },
  });
  return [half(0), half(1)];
}

/** Names of the files that the packager writes (text segments are found as fragments of a playlist). */
const PATTERNS = { playlist: '*.{m3u8,mpd}', init: 'init.mp4', frag: '*.{m4s,vtt}' };

/**
 * Makes the task of signing a folder of media while it is packaged into `target`. A signed segment is removed from the
 * scratch space at once, usually before it was written to the disk.
 */
function packagingTaskOf(
  task: PackagingTask,
  sources: LocalCopies,
  target: PackagedFolder,
  context: InputContext,
): SigningTask {
  const { plan } = task;
  return growingTaskOf({
    folder: target,
    sizeBytes: sizeOfSources(task),
    patterns: PATTERNS,
    // The packager reports text at its end only.
    renditions: plan.streams
      .filter(({ kind }) => kind !== 'text')
      .map((stream) => ({ folder: stream.folder, fragmentCount: expectedFragments(stream, plan) })),
    playlistPaths: playlistPathsOf(plan),
    async make(signal, wrote) {
      const making = contextInScratch({ ...context, signal }, task, target);
      const warnings = await makePublication(task, sources, target, making, wrote);
      context.reached('packaged');
      return warnings;
    },
    // I-frame playlists name ranges of segments, which are read again when playlists are rewritten.
    ...(!plan.iFramePlaylists && { signed: ({ path }) => target.truncate(path) }),
  });
}

/** Estimates the number of segments, which end at key frames. A stream of unknown duration counts as long as the longest. */
function expectedFragments({ durationSeconds }: PlannedStream, { streams, segmentSeconds }: PackagingPlan): number {
  const longest = Math.max(...streams.map((stream) => stream.durationSeconds ?? 0));
  return Math.max(Math.ceil((durationSeconds ?? longest) / segmentSeconds), 1);
}
