import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { CustomAssertion, ManifestDraft, RecordedAction } from '#provenance/manifest-author.ts';
import type { OutputRendition } from '#publications/checking/rehash-publication.ts';
import { type MediaPart, type Publication, partKey } from '#publications/publication.ts';
import { rewritePlaylists } from '#publications/rewriting/rewrite-playlists.ts';
import { copyFile, writeText } from '#publications/signing/carry-through.ts';
import type { InitLayout } from '#publications/signing/init-layout.ts';
import {
  bindPublication,
  type MapPlan,
  manifestRowsSizeBytes,
  placeholderBinding,
  planMaps,
} from '#publications/signing/merkle-maps.ts';
import { type OutputPaths, outputPathsOf } from '#publications/signing/output-paths.ts';
import { refuseSwappedInits } from '#publications/signing/refuse-swapped-inits.ts';
import {
  type PlannedInit,
  planSignedInit,
  signFragments,
  writeSignedInit,
} from '#publications/signing/sign-rendition.ts';
import type { SignedPart } from '#publications/signing/signed-part.ts';
import type { SigningContext } from '#publications/signing/signing-context.ts';
import { checkPublication } from './check-publication.ts';
import type { Ingredients } from './ingredients.ts';
import type { InputContext, InputOutcome, InputWork, OperationRooms } from './operation.ts';
import type { ReadPublication } from './publication-ingredients.ts';

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
 * Signs a publication that has been read: writes and hashes every fragment once, has the SDK sign one manifest over all
 * renditions, puts it into every init segment, and lands the folder whole.
 */
export async function signAndDeliver(
  read: ReadPublication,
  { assertions, ingredients, actions }: PublicationStatement,
  destination: string,
  work: InputWork,
  context: InputContext,
  rooms: OperationRooms,
): Promise<InputOutcome> {
  const { folder, publication, inits } = read;
  const { signal } = context;
  refuseSwappedInits(folder, publication, inits);
  const draft = await rooms.author.draft(
    { title: folder.name, mediaType: 'video/mp4', assertions, ...ingredients.roles, actions },
    signal,
  );
  const { maps, manifestSizeBytes } = await measureManifest(draft, publication, inits, signal);
  const totalBytes = folder.files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const sink = await rooms.outputs.stageFolder(destination, totalBytes, work, signal, context.scratch);
  let digest: string;
  try {
    context.reached('staged');
    const progress = progressOf(context, totalBytes);
    const signing: SigningContext = {
      folder,
      writer: sink,
      paths: outputPathsOf(publication),
      manifestSizeBytes,
      signal,
      wrote: progress,
    };
    const manifest = await writePublication(publication, inits, maps, draft, signing, context);
    digest = createHash('sha256').update(manifest).digest('hex');
    await sink.seal(signal);
    context.reached('sealed');
    if (rooms.fragmentChecks !== null) {
      const renditions = outputRenditions(publication, signing.paths);
      const stillAlive = () => context.progress(totalBytes, totalBytes);
      await checkPublication(sink, renditions, rooms.fragments, rooms.fragmentChecks, signal, stillAlive);
      context.reached('verified');
    }
    await context.mayDeliver();
    await sink.commit(signal);
    context.reached('delivered');
  } catch (error) {
    await sink.discard();
    throw error;
  }
  return {
    outputPath: sink.destination,
    warnings: [...publication.warnings, ...ingredients.warnings, ...draft.warnings],
    digest,
  };
}

/** Chooses the rows that the manifest holds, so that it stays small, and how much room it takes with them. */
async function measureManifest(
  draft: ManifestDraft,
  { renditions }: Publication,
  inits: readonly InitLayout[],
  signal: AbortSignal,
): Promise<{ maps: readonly MapPlan[]; manifestSizeBytes: number }> {
  const sizes = renditions.map(({ fragments }, index) => {
    const init = inits[index];
    assert(init !== undefined, 'every rendition has an init segment');
    return { firstTrackId: init.firstTrackId, fragmentCount: fragments.length };
  });
  const smallest = planMaps(sizes, Number.POSITIVE_INFINITY);
  const smallestBytes = await draft.measure(placeholderBinding(smallest), signal);
  const maps = planMaps(sizes, smallestBytes - manifestRowsSizeBytes(smallest));
  return { maps, manifestSizeBytes: await draft.measure(placeholderBinding(maps), signal) };
}

/**
 * Writes all files of the signed publication: fragments first, for the manifest binds them; playlists last. Returns the
 * manifest.
 */
async function writePublication(
  publication: Publication,
  inits: readonly InitLayout[],
  maps: readonly MapPlan[],
  draft: ManifestDraft,
  signing: SigningContext,
  context: InputContext,
): Promise<Uint8Array> {
  const { folder, writer, signal } = signing;
  const planned: PlannedInit[] = [];
  const digests: { initHash: Uint8Array; leaves: readonly Uint8Array[] }[] = [];
  const parts = new Map<string, SignedPart>();
  for (const [index, { init, fragments }] of publication.renditions.entries()) {
    const layout = inits[index] as InitLayout;
    const { leaves, parts: signed } = await signFragments(fragments, layout, maps[index] as MapPlan, signing);
    const plannedInit = await planSignedInit(init, layout, signing);
    planned.push(plannedInit);
    digests.push({ initHash: plannedInit.initHash, leaves });
    for (const part of [...signed, plannedInit.part]) parts.set(partKey(part.source), part);
  }
  context.reached('copied');

  const manifest = await draft.sign(bindPublication(maps, digests), signal);
  for (const init of planned) await writeSignedInit(init, manifest, signing);
  context.reached('signed');

  const rewritten = await rewritePlaylists(publication, folder, parts, signal);
  const unchanged = publication.playlists.map(({ path }) => path).filter((path) => !rewritten.has(path));
  const copied = [...publication.otherPaths, ...unchanged];
  await sideBySide(copied, COPIES_AT_ONCE, (path) => copyFile(folder, path, writer, signal, signing.wrote));
  for (const [path, text] of rewritten) await writeText(path, text, writer, signal);
  return manifest;
}

/** Where the renditions lie in the output. */
function outputRenditions({ renditions }: Publication, paths: OutputPaths): OutputRendition[] {
  const pathOf = (part: MediaPart): string => paths.get(partKey(part)) as string;
  return renditions.map(({ init, fragments }) => ({ init: pathOf(init), fragments: fragments.map(pathOf) }));
}

/** Counts output bytes into the input's progress. */
function progressOf(context: InputContext, totalBytes: number): (bytes: number) => void {
  let doneBytes = 0;
  return (bytes) => {
    doneBytes += bytes;
    context.progress(Math.min(doneBytes, totalBytes), totalBytes);
  };
}
