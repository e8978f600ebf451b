import type { ByteSlab } from '#bytes/byte-slab.ts';
import { digestPlan, executePlan, fillHole } from '#bytes/execute-plan.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { outputSizeBytes, type SplicePlan } from '#bytes/splice-plan.ts';
import type { MediaPart, Rendition } from '../publication.ts';
import { type FragmentSequence, groupsOf } from './fragment-groups.ts';
import { readFragmentLayout } from './fragment-layout.ts';
import type { FragmentOutput } from './fragment-output.ts';
import { type InitLayout, readInitLayout } from './init-layout.ts';
import { merkleBoxesOf, merkleBoxSizes, type OpenMap } from './merkle-maps.ts';
import { planInit } from './plan-init.ts';
import { type SignedPart, signedPart } from './signed-part.ts';
import { type FragmentsContext, type SigningContext, withSource } from './signing-context.ts';
import { readerOf } from './top-boxes.ts';
import { type RenditionTracks, type WrittenFragment, writeFragment } from './write-fragment.ts';

/** Fragments of one rendition that are read, hashed and written at once. */
const FRAGMENTS_AT_ONCE = 8;

/** The tracks of a rendition by its first fragment, for as long as its init segment may be written anew. */
export async function tracksOfFragment(
  fragment: MediaPart,
  { folder, signal }: Pick<SigningContext, 'folder' | 'signal'>,
): Promise<readonly number[]> {
  return await withSource(
    folder,
    fragment,
    signal,
    async (source) => (await readFragmentLayout(await readerOf(source, fragment, signal))).trackIds,
  );
}

/** What the fragments of a rendition became. */
export interface SignedFragments {
  /** Their digests in playback order. */
  readonly leaves: readonly Uint8Array[];
  readonly parts: readonly SignedPart[];
}

/** Reads the init segment's layout of every rendition, in order. */
export function readInitLayouts(
  folder: SourceFolder,
  renditions: readonly Rendition[],
  signal: AbortSignal,
): Promise<InitLayout[]> {
  return sideBySide(renditions, FRAGMENTS_AT_ONCE, ({ init }) =>
    withSource(folder, init, signal, async (source) => await readInitLayout(await readerOf(source, init, signal))),
  );
}

/** Writes the fragments of a rendition: each is read once, hashed as it is written, and given its Merkle box. */
export async function signFragments(
  fragments: FragmentSequence,
  init: RenditionTracks,
  map: OpenMap,
  context: FragmentsContext,
): Promise<SignedFragments> {
  const leaves: Uint8Array[] = [];
  const parts: SignedPart[] = [];
  for await (const group of groupsOf(fragments, map.levels, context.sizeOf)) {
    const signing = context.bench.use((slab) => signGroup(group, leaves.length, { init, map, slab }, context));
    for (const { leaf, part } of await signing) {
      leaves.push(leaf);
      parts.push(part);
    }
  }
  return { leaves, parts };
}

/** An init segment ready to be written: what it hashes to depends on the size of the manifest alone. */
export interface PlannedInit {
  readonly initHash: Uint8Array;
  readonly part: SignedPart;
  readonly plan: SplicePlan;
}

/** Plans and hashes an init segment with room for the manifest. */
export async function planSignedInit(
  init: MediaPart,
  layout: InitLayout,
  manifestSizeBytes: number,
  { folder, paths, signal }: SigningContext,
): Promise<PlannedInit> {
  return await withSource(folder, init, signal, async (source) => {
    // An index of the file that it was a range of says nothing true about a file of its own.
    const plan = planInit(layout, manifestSizeBytes, init.range === null ? [] : ['sidx']);
    const { flat: initHash } = await digestPlan(plan, source, { signal });
    return { initHash, plan, part: signedPart(init, paths, outputSizeBytes(plan), source, 0) };
  });
}

/** Writes an init segment with its manifest. */
export async function writeSignedInit(
  { plan, part }: PlannedInit,
  manifest: Uint8Array,
  { folder, writer, signal, wrote, validated }: SigningContext,
): Promise<void> {
  await withSource(folder, part.source, signal, async (source) => {
    const output = await writer.create(part.path, signal);
    try {
      const digests = await executePlan(plan, source, output, { signal, digestSource: validated !== undefined });
      validated?.requireSame(part.source, digests.source);
      await fillHole(plan, output, manifest, signal);
    } finally {
      await output.close();
    }
    wrote(outputSizeBytes(plan));
  });
}

/** What the fragments of a group have in common. */
interface GroupSigning {
  readonly init: RenditionTracks;
  readonly map: OpenMap;
  readonly slab: ByteSlab;
}

/** Writes neighbouring fragments, and their Merkle boxes once all leaves that those are made of are known. */
async function signGroup(
  fragments: readonly MediaPart[],
  first: number,
  { init, map, slab }: GroupSigning,
  context: FragmentsContext,
): Promise<readonly WrittenFragment[]> {
  const open = new Set<FragmentOutput>();
  // Fragments behind those of a group that is not the last one make no difference to the proofs in it.
  const boxSizeOf = merkleBoxSizes({ ...map, count: first + fragments.length });
  try {
    const written = await sideBySide(fragments, FRAGMENTS_AT_ONCE, (part, index) =>
      writeFragment(part, boxSizeOf(first + index), { init, slab, open }, context),
    );
    const boxes = merkleBoxesOf(
      map,
      first,
      written.map(({ leaf }) => leaf),
    );
    await sideBySide(written, FRAGMENTS_AT_ONCE, async ({ output }, index) => {
      await output.finish(boxes[index] as Uint8Array);
      open.delete(output);
      await context.done?.(fragments[index] as MediaPart);
    });
    return written;
  } finally {
    await Promise.allSettled([...open].map((output) => output.close()));
  }
}
