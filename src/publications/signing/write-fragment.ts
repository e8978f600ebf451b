import type { ByteSlab } from '#bytes/byte-slab.ts';
import type { ByteSource } from '#bytes/byte-source.ts';
import { compose } from '#bytes/compose.ts';
import { executePlan } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { contentOf } from '../checking/part-contents.ts';
import type { MediaPart } from '../publication.ts';
import { type FragmentLayout, readFragmentLayout } from './fragment-layout.ts';
import { type FragmentOutput, heldOutput, streamedOutput } from './fragment-output.ts';
import type { InitLayout } from './init-layout.ts';
import { type FragmentPlan, planFragment } from './plan-fragment.ts';
import { type SignedPart, signedPart } from './signed-part.ts';
import { type SigningContext, withSource } from './signing-context.ts';
import { heldReaderOf, rangeOf, readerOf } from './top-boxes.ts';

/** A fragment up to this size is held in memory until its group is done: the files cost more than the bytes. */
const HELD_FRAGMENT_MAX_BYTES = 256 * 1024;

/** A fragment that is written but for its Merkle box. */
export interface WrittenFragment {
  readonly output: FragmentOutput;
  readonly leaf: Uint8Array;
  readonly part: SignedPart;
}

/** Whose tracks the fragments of a rendition have samples of. */
export type RenditionTracks = Pick<InitLayout, 'path' | 'trackIds'>;

/** What neighbouring fragments are written with. */
export interface FragmentGroup {
  readonly init: RenditionTracks;
  /** Holds small fragments until all of the group are finished. */
  readonly slab: ByteSlab;
  /** Outputs that may be left unfinished. */
  readonly open: Set<FragmentOutput>;
}

/** Reads a fragment once, hashes what it becomes, and writes it with room for its Merkle box. */
export async function writeFragment(
  part: MediaPart,
  boxSizeBytes: number,
  { init, slab, open }: FragmentGroup,
  context: SigningContext,
): Promise<WrittenFragment> {
  const { folder, signal } = context;
  return await withSource(folder, part, signal, async (source) => {
    const held = await readSmall(source, part, slab, signal);
    const reader = held === null ? await readerOf(source, part, signal) : heldReaderOf(held, part);
    const layout = await readFragmentLayout(reader);
    refuseOtherTracks(layout, init);
    const plan = planFragment(layout, boxSizeBytes);
    const sizeBytes = outputSizeBytes(plan.plan);
    const signed = signedPart(part, context.paths, sizeBytes, source, boxSizeBytes);
    if (held !== null) context.validated?.requireSame(part, contentOf(layout.boxes, held, reader.start));
    const { output, leaf } =
      held === null
        ? await streamFragment(plan, { part, source }, signed.path, open, context)
        : composeFragment(plan, held, reader.start, slab.take(sizeBytes), signed.path, context);
    context.wrote(sizeBytes);
    return { output, leaf, part: signed };
  });
}

/** A fragment that is small enough to be held, as it lies in its file; null where it is not. */
async function readSmall(
  source: ByteSource,
  part: MediaPart,
  slab: ByteSlab,
  signal: AbortSignal,
): Promise<Buffer | null> {
  const { offset, length } = rangeOf(part, source);
  if (length > HELD_FRAGMENT_MAX_BYTES) return null;
  const held = slab.take(length);
  await source.read(held, offset, signal);
  await source.checkUnchanged?.(signal);
  return held;
}

/** Makes a small fragment in memory. */
function composeFragment(
  { plan, merkleBoxOffset }: FragmentPlan,
  held: Buffer,
  sourceOffset: number,
  output: Buffer,
  path: string,
  { writer, signal }: SigningContext,
): Pick<WrittenFragment, 'output' | 'leaf'> {
  const leaf = compose(plan, held, sourceOffset, output);
  return { leaf, output: heldOutput(path, output, merkleBoxOffset, writer, signal) };
}

/** Writes a fragment as it is read. */
async function streamFragment(
  { plan, merkleBoxOffset }: FragmentPlan,
  { part, source }: { readonly part: MediaPart; readonly source: ByteSource },
  path: string,
  open: Set<FragmentOutput>,
  { writer, signal, validated }: SigningContext,
): Promise<Pick<WrittenFragment, 'output' | 'leaf'>> {
  const output = await streamedOutput(path, merkleBoxOffset, writer, signal);
  open.add(output);
  const digests = await executePlan(plan, source, output, { signal, digestSource: validated !== undefined });
  validated?.requireSame(part, digests.source);
  const { flat: leaf } = digests;
  return { output, leaf };
}

/** A playlist that gives a fragment to the wrong init segment names something that no player can play. */
function refuseOtherTracks({ path, moof, trackIds }: FragmentLayout, init: RenditionTracks): void {
  const stranger = trackIds.find((trackId) => !init.trackIds.includes(trackId));
  if (stranger === undefined) return;
  const problem = `it is of track ${stranger}, and its init segment ${JSON.stringify(init.path)} has only ${init.trackIds.join(', ')}`;
  throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'moof', offset: moof.offset, problem });
}
