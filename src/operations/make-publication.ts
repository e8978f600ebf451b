import { mkdir } from 'node:fs/promises';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import { packageMedia } from '#packaging/package-media.ts';
import { PackagedFolder } from '#packaging/packaged-folder.ts';
import type { PackagingPlan } from '#packaging/packaging-plan.ts';
import { planPackaging } from '#packaging/plan-packaging.ts';
import { probeFolder } from '#packaging/probe-folder.ts';
import { findProgram } from '#packaging/program-paths.ts';
import { checkPackaged } from './check-packaged.ts';

/**
 * Making a publication out of a folder of media, as `/v2/package` and package-and-sign both do it:
 *
 *   const plan = await planPublication(folder, params, context.signal);       // nothing is written yet
 *   const made = await makePublication(plan, folder, target, context);        // `target`: an empty folder on this host
 *   made.publication   a SourceFolder over the files in `target`: sign these, without another copy
 *   made.plan.streams  what became of which stream of which source file, and by which route
 *   made.warnings      everything that was left out or is doubtful
 *
 * Codecs change only where `route.packets` is `flac` (raw samples, losslessly) and where subtitles become WebVTT; all else
 * keeps its packets bit for bit.
 */
export interface MadePublication {
  readonly publication: PackagedFolder;
  readonly plan: PackagingPlan;
  readonly warnings: readonly string[];
}

/** What making a publication may use; an operation's context is one. */
export interface MakingContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  progress(bytesDone: number, bytesTotal: number): void;
}

/** Finds out what a folder holds and decides what becomes of it. */
export async function planPublication(
  folder: SourceFolder,
  params: PackageParams,
  signal: AbortSignal,
): Promise<PackagingPlan> {
  const plan = planPackaging(await probeFolder(folder, signal), params, findProgram('ffmpeg') !== null);
  refuseWarnings(plan.warnings, params);
  return plan;
}

/**
 * Carries out a plan in `target` and checks the result: every playlist parses and names only what is there, and nothing
 * of the film is missing. `wrote` is called with the path of every file as soon as it is whole.
 */
export async function makePublication(
  plan: PackagingPlan,
  folder: SourceFolder,
  params: PackageParams,
  target: string,
  context: MakingContext,
  wrote: (path: string) => void = () => undefined,
): Promise<MadePublication> {
  const { signal, scratch } = context;
  await mkdir(target, { recursive: true });
  const files = await packageMedia(plan, folder, target, {
    signal,
    scratch,
    progress: (bytesDone, bytesTotal) => context.progress(bytesDone, bytesTotal),
    wrote,
  });
  const publication = await PackagedFolder.open(folder.name, target, files);
  const doubts = await checkPackaged(plan, publication, signal);
  refuseWarnings(doubts, params);
  return { publication, plan, warnings: [...plan.warnings, ...doubts] };
}

function refuseWarnings(warnings: readonly string[], { strict }: PackageParams): void {
  if (strict === true && warnings.length > 0) throw new AppError('PACKAGING_WARNED', { warnings });
}
