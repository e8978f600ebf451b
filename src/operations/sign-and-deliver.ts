import { createHash } from 'node:crypto';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { Warning } from '#errors/warning.ts';
import type { CustomAssertion, ManifestDraft, RecordedAction } from '#provenance/authoring/manifest-author.ts';
import type { OutputRendition } from '#publications/checking/rehash-publication.ts';
import { type MediaPart, partKey } from '#publications/publication.ts';
import { rewritePlaylists } from '#publications/rewriting/rewrite-playlists.ts';
import { copyFile, writeText } from '#publications/signing/carry-through.ts';
import type { InitLayout } from '#publications/signing/init-layout.ts';
import {
  bindPublication,
  type MapPlan,
  manifestRowsSizeBytes,
  placeholderBinding,
  planMaps,
  type RenditionSize,
} from '#publications/signing/merkle-maps.ts';
import { type PlannedInit, planSignedInit, writeSignedInit } from '#publications/signing/sign-rendition.ts';
import { checkPublication } from './check-publication.ts';
import type { Ingredients } from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import type { FragmentsOutput, SigningTask, WrittenPublication } from './signing-task.ts';
import { refuseWarnings, type StrictParams } from './strict.ts';

/** Files that are copied at once. */
const COPIES_AT_ONCE = 8;

/** What the manifest of a publication says beside its hard binding. */
export interface PublicationStatement {
  readonly assertions: readonly CustomAssertion[];
  readonly ingredients: Ingredients;
  /** What happened to the parent before it was signed. */
  readonly actions: readonly RecordedAction[];
}

/**
 * Signs a publication: writes and hashes every fragment once, has the SDK sign one manifest over all renditions, puts it
 * into every init segment, and lands the folder whole.
 */
export async function signAndDeliver(
  task: SigningTask,
  { assertions, ingredients, actions }: PublicationStatement,
  destination: string,
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const { signal } = context;
  const { title, sizeBytes: totalBytes } = task;
  const draft = await rooms.author.draft(
    { title, mediaType: 'video/mp4', assertions, ...ingredients.roles, actions },
    signal,
  );
  const params = work.params as StrictParams | undefined;
  refuseWarnings([...ingredients.warnings, ...draft.warnings], params);
  const maps = await chooseMaps(draft, task.renditions, signal);
  const sink = await rooms.outputs.stageFolder(destination, totalBytes, work, signal, context.scratch);
  let warnings: readonly Warning[];
  let digest: string;
  try {
    context.reached('staged');
    const output = { writer: sink, signal, wrote: progressOf(context, totalBytes) };
    const written = await task.writeFragments(maps, output);
    warnings = [...written.warnings, ...written.read.publication.warnings, ...ingredients.warnings, ...draft.warnings];
    refuseWarnings(warnings, params);
    const manifest = await signWritten(written, draft, output, context);
    digest = createHash('sha256').update(manifest).digest('hex');
    await sink.seal(signal);
    context.reached('sealed');
    if (rooms.fragmentChecks !== null) {
      const stillAlive = () => context.progress(totalBytes, totalBytes);
      const renditions = outputRenditions(written);
      const { fragments: reader, fragmentChecks: fragments } = rooms;
      await checkPublication({ output: sink, renditions, reader, fragments, stillAlive }, signal);
      context.reached('verified');
    }
    await context.mayDeliver();
    await sink.commit(signal);
    context.reached('delivered');
  } catch (error) {
    await sink.discard();
    throw error;
  }
  return { outputPath: sink.destination, warnings, digest };
}

/** Chooses the rows that the manifest holds, so that it stays small. */
async function chooseMaps(
  draft: ManifestDraft,
  renditions: readonly RenditionSize[],
  signal: AbortSignal,
): Promise<readonly MapPlan[]> {
  const smallest = planMaps(renditions, Number.POSITIVE_INFINITY);
  const smallestBytes = await draft.measure(placeholderBinding(smallest), signal);
  return planMaps(renditions, smallestBytes - manifestRowsSizeBytes(smallest));
}

/** Writes what comes after the fragments, which the manifest binds: init segments, and playlists last. Returns the manifest. */
async function signWritten(
  { read, validated, paths, maps, fragments }: WrittenPublication,
  draft: ManifestDraft,
  output: FragmentsOutput,
  context: InputContext,
): Promise<Uint8Array> {
  const { folder, publication, inits } = read;
  const { writer, signal, wrote } = output;
  const signing = { folder, paths, ...output, ...(validated !== undefined && { validated }) };
  const manifestSizeBytes = await draft.measure(placeholderBinding(maps), signal);
  const planned: PlannedInit[] = [];
  for (const [index, { init }] of publication.renditions.entries()) {
    planned.push(await planSignedInit(init, inits[index] as InitLayout, manifestSizeBytes, signing));
  }
  context.reached('copied');

  const digests = planned.map(({ initHash }, index) => ({ initHash, leaves: fragments[index]?.leaves ?? [] }));
  const manifest = await draft.sign(bindPublication(maps, digests), signal);
  for (const init of planned) await writeSignedInit(init, manifest, signing);
  context.reached('signed');

  const signed = [...fragments.flatMap(({ parts }) => parts), ...planned.map(({ part }) => part)];
  const parts = new Map(signed.map((part) => [partKey(part.source), part]));
  const rewritten = await rewritePlaylists(publication, folder, parts, signal);
  const unchanged = publication.playlists.map(({ path }) => path).filter((path) => !rewritten.has(path));
  const copied = [...publication.otherPaths, ...unchanged];
  await sideBySide(copied, COPIES_AT_ONCE, (path) => copyFile(folder, path, writer, signal, wrote));
  for (const [path, text] of rewritten) await writeText(path, text, writer, signal);
  return manifest;
}

/** Where the renditions lie in the output. */
function outputRenditions({ read, paths }: WrittenPublication): OutputRendition[] {
  const pathOf = (part: MediaPart): string => paths.get(partKey(part)) as string;
  return read.publication.renditions.map(({ init, fragments }) => ({
    init: pathOf(init),
    fragments: fragments.map(pathOf),
  }));
}

/** Counts output bytes into the input's progress. */
function progressOf(context: InputContext, totalBytes: number): (bytes: number) => void {
  let doneBytes = 0;
  return (bytes) => {
    doneBytes += bytes;
    context.progress(Math.min(doneBytes, totalBytes), totalBytes);
  };
}
