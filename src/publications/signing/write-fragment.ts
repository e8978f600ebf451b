import type { BufferArena } from '#bytes/buffers.ts';
import type { ByteSource } from '#bytes/byte-source.ts';
import { applyInMemory, executePlan } from '#bytes/execute-plan.ts';
import { outputSizeBytes } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { type FragmentLayout, readFragmentLayout } from '../fragments/fragment-layout.ts';
import type { InitLayout } from '../fragments/init-layout.ts';
import { contentOf } from '../fragments/part-contents.ts';
import { type SignedPart, signedPart } from '../fragments/signed-part.ts';
import { memoryReaderOf, rangeOf, readerOf, withSource } from '../fragments/top-boxes.ts';
import type { MediaPart } from '../media-part.ts';
import { type FragmentPlan, planFragment } from './plan-parts.ts';
import type { PublicationWriter, SigningContext } from './signing-context.ts';

/** Fragments up to this size stay in memory until their group is signed: opening files costs more than the memory. */
const MAX_BUFFERED_FRAGMENT_BYTES = 256 * 1024;

/** A fragment that is written but for its Merkle box. */
export interface WrittenFragment {
  readonly output: FragmentOutput;
  readonly leaf: Uint8Array;
  readonly part: SignedPart;
}

/** The init segment and the tracks that the fragments of a rendition belong to. */
export type RenditionTracks = Pick<InitLayout, 'path' | 'trackIds'>;

/** Resources that the fragments of a group share. */
export interface FragmentGroup {
  readonly init: RenditionTracks;
  /** Holds small fragments until all of the group are finished. */
  readonly arena: BufferArena;
  /** Outputs that may be left unfinished. */
  readonly open: Set<FragmentOutput>;
}

/** Reads a fragment once, hashes what it becomes, and writes it with room for its Merkle box. */
export async function writeFragment(
  part: MediaPart,
  boxSizeBytes: number,
  { init, arena, open }: FragmentGroup,
  context: SigningContext,
): Promise<WrittenFragment> {
  const { folder, signal } = context;
  return await withSource(folder, part, signal, async (source) => {
    const bytes = await readSmall(source, part, arena, signal);
    const reader = bytes === null ? await readerOf(source, part, signal) : memoryReaderOf(bytes, part);
    const layout = await readFragmentLayout(reader);
    refuseOtherTracks(layout, init);
    const plan = planFragment(layout, boxSizeBytes);
    const sizeBytes = outputSizeBytes(plan.plan);
    const signed = signedPart(part, context.paths, sizeBytes, source, boxSizeBytes);
    if (bytes !== null) context.validated?.requireSame(part, contentOf(layout.boxes, bytes, reader.start));
    const { output, leaf } =
      bytes === null
        ? await streamFragment(plan, { part, source }, signed.path, open, context)
        : composeFragment(plan, bytes, reader.start, arena.allocate(sizeBytes), signed.path, context);
    context.wrote(sizeBytes);
    return { output, leaf, part: signed };
  });
}

/** Reads a small fragment into memory; null where it is larger than `MAX_BUFFERED_FRAGMENT_BYTES`. */
async function readSmall(
  source: ByteSource,
  part: MediaPart,
  arena: BufferArena,
  signal: AbortSignal,
): Promise<Buffer | null> {
  const { offset, length } = rangeOf(part, source);
  if (length > MAX_BUFFERED_FRAGMENT_BYTES) return null;
  const bytes = arena.allocate(length);
  await source.read(bytes, offset, signal);
  await source.checkUnchanged?.(signal);
  return bytes;
}

/** Applies the plan of a small fragment in memory. */
function composeFragment(
  { plan, merkleBoxOffset }: FragmentPlan,
  bytes: Buffer,
  sourceOffset: number,
  output: Buffer,
  path: string,
  { writer, signal }: SigningContext,
): Pick<WrittenFragment, 'output' | 'leaf'> {
  const leaf = applyInMemory(plan, bytes, sourceOffset, output);
  return { leaf, output: bufferedOutput(path, output, merkleBoxOffset, writer, signal) };
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

/** Throws `FRAGMENT_MALFORMED` for a fragment of another track: no player can play it with this init segment. */
function refuseOtherTracks({ path, moof, trackIds }: FragmentLayout, init: RenditionTracks): void {
  const foreignTrack = trackIds.find((trackId) => !init.trackIds.includes(trackId));
  if (foreignTrack === undefined) return;
  const problem = `it is of track ${foreignTrack}, and its init segment ${JSON.stringify(init.path)} has only ${init.trackIds.join(', ')}`;
  throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'moof', offset: moof.offset, problem });
}

/** Output of a fragment; its Merkle box is written last. */
export interface FragmentOutput {
  /** Writes the Merkle box and closes the file. */
  finish(merkleBox: Uint8Array): Promise<void>;
  /** Closes the file if it was not finished. Safe to call again. */
  close(): Promise<void>;
}

/** A fragment whose file is being written; `write` takes everything but the Merkle box. */
export interface StreamedOutput extends FragmentOutput {
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
}

/** Creates the output of a fragment that is written as it is read. */
export async function streamedOutput(
  path: string,
  merkleBoxOffset: number,
  writer: PublicationWriter,
  signal: AbortSignal,
): Promise<StreamedOutput> {
  const file = await writer.create(path, signal);
  return {
    write: (bytes, position) => file.write(bytes, position, signal),
    async finish(merkleBox) {
      await file.write(merkleBox, merkleBoxOffset, signal);
      await file.close();
    },
    close: () => file.close(),
  };
}

/** Makes the output of a small fragment, which stays in memory until it is finished: its file is opened and written once. */
export function bufferedOutput(
  path: string,
  bytes: Buffer,
  merkleBoxOffset: number,
  writer: PublicationWriter,
  signal: AbortSignal,
): FragmentOutput {
  return {
    async finish(merkleBox) {
      bytes.set(merkleBox, merkleBoxOffset);
      const file = await writer.create(path, signal);
      try {
        await file.write(bytes, 0, signal);
      } finally {
        await file.close();
      }
    },
    close: () => Promise.resolve(),
  };
}
