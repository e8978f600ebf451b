import { LocalCopies } from '#bytes/local-copies.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PackageParams } from '#contract/package-request.ts';
import { AppError } from '#errors/app-error.ts';
import type { Warning } from '#errors/warning.ts';
import type { FolderSink } from '#outputs/folder-sink.ts';
import { PackagedFolder } from '#packaging/packaged-folder.ts';
import { NO_PATTERNS } from '#publications/repackaging/choose-renditions.ts';
import { copyFile } from '#publications/signing/carry-through.ts';
import { describeFinding, growthOf } from './existing-tracks.ts';
import {
  type CarryTask,
  contextInScratch,
  makePublication,
  type PackagingTask,
  planPublication,
  sizeOfSources,
} from './make-publication.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import { refuseWarnings } from './strict.ts';

/** Files that are copied at once. */
const COPIES_AT_ONCE = 8;

/**
 * Packages one folder of media: plans what becomes of every stream, has the packager write HLS and DASH over the same
 * segments into the staged folder, checks the result, and lands it whole.
 */
export async function packageFolder(
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const folder = await rooms.inputs.openFolder(work.input, work.inputIndex, context);
  try {
    return await packageOpened(folder, work, context, rooms);
  } finally {
    await folder.close();
  }
}

async function packageOpened(
  folder: SourceFolder,
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const { signal } = context;
  const params = (work.params ?? {}) as PackageParams;
  const task = await planPublication(folder, params, NO_PATTERNS, signal);
  const found = task.kind === 'carry' ? warningsOfCopying(task, params) : [];
  refuseWarnings(found, params);
  const destination = rooms.outputs.placeFolder(work.output, folder.name);
  await context.claimDestination(destination);
  context.reached('resolved');

  const sink = await rooms.outputs.stageFolder(destination, sizeOfSources(task), work, signal, context.scratch);
  try {
    context.reached('staged');
    if (task.kind === 'carry') await carry(task, sink, context);
    const warnings = task.kind === 'carry' ? found : await make(task, sink, context);
    context.reached('packaged');
    await sink.seal(signal);
    context.reached('sealed');
    await context.mayDeliver();
    await sink.commit(signal);
    context.reached('delivered');
    return { outputPath: sink.destination, warnings };
  } catch (error) {
    await sink.discard();
    throw error;
  }
}

function warningsOfCopying({ existing }: CarryTask, params: PackageParams): Warning[] {
  return [...describeFinding(existing, 'copied', params), ...growthOf(existing), ...existing.copied.warnings];
}

/** Copies a publication as it is, with what belongs to it. */
async function carry(task: CarryTask, sink: FolderSink, { signal, progress }: InputContext): Promise<void> {
  const { paths } = task.existing.copied;
  const totalBytes = sizeOfSources(task);
  let doneBytes = 0;
  await sideBySide([...paths], COPIES_AT_ONCE, (path) =>
    copyFile(task.folder, path, sink, signal, (bytes) => {
      doneBytes += bytes;
      progress(doneBytes, totalBytes);
    }),
  );
}

/** Packages into the staged folder itself where that lies on this host, else by way of scratch. */
async function make(task: PackagingTask, sink: FolderSink, context: InputContext): Promise<readonly Warning[]> {
  if (sink.stagedPath !== undefined) return await makeInPlace(task, sink, sink.stagedPath, context);
  const target = await context.scratch.reserveFolder('packaged', sizeOfSources(task));
  try {
    const packaged = new PackagedFolder(task.folder.name, target.path);
    const sources = new LocalCopies(task.folder, context.scratch);
    const warnings = await makePublication(task, sources, packaged, contextInScratch(context, task, packaged));
    await sideBySide(packaged.files, COPIES_AT_ONCE, ({ path }) =>
      copyFile(packaged, path, sink, context.signal, () => undefined),
    );
    return warnings;
  } finally {
    target.release();
  }
}

/** Files become durable while others are still being packaged. */
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
    const diskFull = () => new AppError('OUTPUT_FAILED', { path: sink.destination, problem: 'the disk is full' });
    const warnings = await makePublication(task, sources, target, { ...context, signal, diskFull }, adopt);
    await adopting;
    return warnings;
  } finally {
    // Nothing may be under way when the folder is discarded; what failed has been thrown above.
    await adopting.catch(() => undefined);
  }
}
