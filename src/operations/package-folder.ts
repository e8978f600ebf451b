import { LocalCopies } from '#bytes/local-copies.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import type { Warning } from '#errors/warning.ts';
import type { FolderSink } from '#outputs/output-sink.ts';
import { PackagedFolder } from '#packaging/packaged-folder.ts';
import { copyFile } from '#publications/copy-files.ts';
import { NO_PATTERNS } from '#publications/find-publication.ts';
import type { InputContext, InputOutcome, InputWork, OperationServices } from './operation.ts';
import { growthOf, publicationFoundWarning } from './packaging/existing-tracks.ts';
import {
  type CarryTask,
  contextInScratch,
  includedFiles,
  makePublication,
  type PackagingTask,
  planPublication,
  sizeOfSources,
} from './packaging/make-publication.ts';
import { refuseWarnings } from './refuse-warnings.ts';

/** Files that are copied concurrently. */
const MAX_CONCURRENT_COPIES = 8;

/**
 * Packages a folder of media: plans a rendition for every stream, has the packager write HLS and DASH over the same
 * segments into the staged folder, checks the result, and commits the folder.
 */
export async function packageFolder(
  work: InputWork,
  context: InputContext,
  services: OperationServices,
): Promise<InputOutcome> {
  const { signal } = context;
  const params = (work.params ?? {}) as PackageParams;
  const folder = includedFiles(await services.inputs.openFolder(work.input, work.inputIndex, context), params);
  const task = await planPublication(folder, params, NO_PATTERNS, signal);
  const found = task.kind === 'carry' ? warningsOfCopying(task, params) : [];
  refuseWarnings(found, params);
  const destination = services.outputs.destinationOf(work.output, folder.name);
  await context.reserveOutputPath(destination);
  context.reached('resolved');

  const sink = await services.outputs.stageFolder(destination, sizeOfSources(task), work, signal, context.scratch);
  try {
    context.reached('staged');
    if (task.kind === 'carry') await carry(task, sink, context);
    const warnings = task.kind === 'carry' ? found : await make(task, sink, context);
    context.reached('packaged');
    await sink.seal(signal);
    context.reached('sealed');
    await context.confirmLease();
    await sink.commit(signal);
    context.reached('delivered');
    return { outputPath: sink.destination, warnings, manifestDigest: null };
  } catch (error) {
    await sink.discard();
    throw error;
  }
}

function warningsOfCopying({ existing }: CarryTask, params: PackageParams): Warning[] {
  return [...publicationFoundWarning(existing, 'copied', params), ...growthOf(existing), ...existing.copied.warnings];
}

/** Copies a publication unchanged, with the files that belong to it. */
async function carry(task: CarryTask, sink: FolderSink, { signal, progress }: InputContext): Promise<void> {
  const { paths } = task.existing.copied;
  const totalBytes = sizeOfSources(task);
  let doneBytes = 0;
  await mapConcurrent([...paths], MAX_CONCURRENT_COPIES, (path) =>
    copyFile(task.folder, path, sink, signal, (bytes) => {
      doneBytes += bytes;
      progress(doneBytes, totalBytes);
    }),
  );
}

/** Packages into the staged folder itself where it is on this host, else into the scratch space first. */
async function make(task: PackagingTask, sink: FolderSink, context: InputContext): Promise<readonly Warning[]> {
  if (sink.stagedPath !== undefined) return await makeInPlace(task, sink, sink.stagedPath, context);
  const target = await context.scratch.reserveFolder('packaged', sizeOfSources(task));
  try {
    const packaged = new PackagedFolder(task.folder.name, target.path);
    const sources = new LocalCopies(task.folder, context.scratch);
    const warnings = await makePublication(task, sources, packaged, contextInScratch(context, task, packaged));
    await mapConcurrent(packaged.files, MAX_CONCURRENT_COPIES, ({ path }) =>
      copyFile(packaged, path, sink, context.signal, () => undefined),
    );
    return warnings;
  } finally {
    target.release();
  }
}

/** Packages into the staged folder, and syncs files while others are still written. */
async function makeInPlace(
  task: PackagingTask,
  sink: FolderSink,
  stagedPath: string,
  context: InputContext,
): Promise<readonly Warning[]> {
  const stop = new AbortController();
  const signal = AbortSignal.any([context.signal, stop.signal]);
  let adopting = Promise.resolve();
  const adopt = (path: string): void => {
    adopting = adopting.then(() => sink.adopt?.(path, signal));
    adopting.catch((error: unknown) => stop.abort(error));
  };
  try {
    const sources = new LocalCopies(task.folder, context.scratch);
    const target = new PackagedFolder(task.folder.name, stagedPath);
    const diskFull = () => new AppError('OUTPUT_DISK_FILLED', { path: sink.destination, problem: 'the disk is full' });
    const warnings = await makePublication(task, sources, target, { ...context, signal, diskFull }, adopt);
    await adopting;
    return warnings;
  } finally {
    // No file may be in use when the folder is discarded. A failure was thrown above.
    await adopting.catch(() => undefined);
  }
}
