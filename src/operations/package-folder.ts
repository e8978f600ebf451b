import { sideBySide } from '#bytes/side-by-side.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PackageParams } from '#contract/package-request.ts';
import type { FolderSink } from '#outputs/folder-sink.ts';
import type { PackagingPlan } from '#packaging/packaging-plan.ts';
import { copyFile } from '#publications/signing/carry-through.ts';
import { type MadePublication, makePublication, planPublication } from './make-publication.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';

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
  const plan = await planPublication(folder, params, signal);
  const destination = rooms.outputs.placeFolder(work.output, folder.name);
  await context.claimDestination(destination);
  context.reached('resolved');

  const totalBytes = sizeOfSources(plan, folder);
  const sink = await rooms.outputs.stageFolder(destination, totalBytes, work, signal, context.scratch);
  try {
    context.reached('staged');
    const { warnings } = await makeInto(sink, plan, folder, params, totalBytes, context);
    context.reached('packaged');
    await sink.seal(signal);
    context.reached('sealed');
    await sink.commit(signal);
    context.reached('delivered');
    return { outputPath: sink.destination, warnings };
  } catch (error) {
    await sink.discard();
    throw error;
  }
}

/** What the files that are packaged hold together, in bytes: the publication is about as large. */
function sizeOfSources({ streams }: PackagingPlan, { files }: SourceFolder): number {
  const used = new Set(streams.map(({ file }) => file));
  return files.reduce((sum, { path, sizeBytes }) => sum + (used.has(path) ? sizeBytes : 0), 0);
}

/** Into the staged folder itself where that lies on this host, else by way of scratch. */
async function makeInto(
  sink: FolderSink,
  plan: PackagingPlan,
  folder: SourceFolder,
  params: PackageParams,
  totalBytes: number,
  context: InputContext,
): Promise<MadePublication> {
  if (sink.stagedPath !== undefined) {
    return await makeInPlace(sink, sink.stagedPath, plan, folder, params, context);
  }
  const { signal } = context;
  const target = await context.scratch.reserveFolder('packaged', totalBytes);
  try {
    const made = await makePublication(plan, folder, params, target.path, context);
    const paths = made.publication.files.map(({ path }) => path);
    await sideBySide(paths, COPIES_AT_ONCE, (path) => copyFile(made.publication, path, sink, signal, () => undefined));
    return made;
  } finally {
    target.release();
  }
}

/** Files become durable while others are still being packaged. */
async function makeInPlace(
  sink: FolderSink,
  target: string,
  plan: PackagingPlan,
  folder: SourceFolder,
  params: PackageParams,
  context: InputContext,
): Promise<MadePublication> {
  const stop = new AbortController();
  const signal = AbortSignal.any([context.signal, stop.signal]);
  let adopting = Promise.resolve();
  const adopt = (path: string): void => {
    adopting = adopting.then(() => sink.adopt?.(path, signal));
    adopting.catch((error: unknown) => stop.abort(error));
  };
  try {
    const made = await makePublication(plan, folder, params, target, { ...context, signal }, adopt);
    await adopting;
    return made;
  } finally {
    // Nothing may be under way when the folder is discarded; what failed has been thrown above.
    await adopting.catch(() => undefined);
  }
}
