import type { BufferArena } from '#bytes/buffers.ts';
import type { ByteSource } from '#bytes/byte-source.ts';
import { applyInMemory, digestPlan, executePlan, fillHole } from '#bytes/execute-plan.ts';
import { withSource } from '#bytes/source-folder.ts';
import { outputSizeBytes, type SplicePlan } from '#bytes/splice-plan.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt, valueAt } from '#errors/assert.ts';
import type { FolderPart } from '#outputs/output-sink.ts';
import { type FragmentLayout, readFragmentLayout } from '../fragments/fragment-layout.ts';
import type { InitLayout } from '../fragments/init-layout.ts';
import { contentOf } from '../fragments/part-contents.ts';
import type { SignedPart } from '../fragments/signed-part.ts';
import { memoryReaderOf, readerOf } from '../fragments/top-boxes.ts';
import { type MediaPart, partKey, rangeOf } from '../media-part.ts';
import { merkleBoxesOf, merkleBoxSizes, type OpenMap } from './merkle-maps.ts';
import { type FragmentPlan, planFragment, planInit } from './plan-parts.ts';
import type { FragmentsContext, SigningContext } from './signing-context.ts';

/** Limit on fragments of one rendition that are read, hashed and written concurrently. */
const MAX_CONCURRENT_FRAGMENTS = 8;

/** Returns the ids of the tracks that a fragment has samples of. */
export async function trackIdsOf(
  fragment: MediaPart,
  { folder, signal }: Pick<SigningContext, 'folder' | 'signal'>,
): Promise<readonly number[]> {
  return await withSource(folder, fragment, signal, async (source) => {
    const layout = await readFragmentLayout(await readerOf(source, fragment, signal));
    return layout.trackIds;
  });
}

/** The signed fragments of a rendition. */
export interface SignedFragments {
  /** Their digests in playback order. */
  readonly leaves: readonly Uint8Array[];
  readonly parts: readonly SignedPart[];
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
    const signing = context.mutex.run((arena) => signGroup(group, leaves.length, map, { init, arena }, context));
    for (const { leaf, part } of await signing) {
      leaves.push(leaf);
      parts.push(part);
    }
  }
  return { leaves, parts };
}

/** An init segment ready to be written: what it hashes to depends on the size of the manifest alone. */
export interface PlannedInit {
  readonly init: MediaPart;
  readonly initHash: Uint8Array;
  readonly plan: SplicePlan;
}

/** Plans and hashes an init segment with space for the manifest. */
export async function planSignedInit(
  init: MediaPart,
  layout: InitLayout,
  manifestSizeBytes: number,
  { folder, signal }: SigningContext,
): Promise<PlannedInit> {
  return await withSource(folder, init, signal, async (source) => {
    const plan = planInit(layout, manifestSizeBytes);
    const { flat: initHash } = await digestPlan(plan, source, { signal });
    return { init, initHash, plan };
  });
}

/** Writes an init segment with its manifest. */
export async function writeSignedInit(
  { init, plan }: PlannedInit,
  manifest: Uint8Array,
  { folder, writer, paths, signal, wrote, validated }: SigningContext,
): Promise<void> {
  await withSource(folder, init, signal, async (source) => {
    const output = await writer.create(valueAt(paths, partKey(init)), signal);
    try {
      const digests = await executePlan(plan, source, output, { signal, digestSource: validated !== undefined });
      validated?.requireSame(init, digests.source);
      await fillHole(plan, output, manifest, signal);
    } finally {
      await output.close();
    }
    wrote(outputSizeBytes(plan));
  });
}

/** Writes neighbouring fragments, and their Merkle boxes once all leaves that those are made of are known. */
async function signGroup(
  fragments: readonly MediaPart[],
  first: number,
  map: OpenMap,
  shared: Pick<FragmentGroup, 'init' | 'arena'>,
  context: FragmentsContext,
): Promise<readonly WrittenFragment[]> {
  const open = new Set<FolderPart>();
  // Fragments behind those of a group that is not the last one make no difference to the proofs in it.
  const boxSizeOf = merkleBoxSizes({ ...map, count: first + fragments.length });
  try {
    const written = await mapConcurrent(fragments, MAX_CONCURRENT_FRAGMENTS, (part, index) =>
      writeFragment(part, boxSizeOf(first + index), { ...shared, open }, context),
    );
    const leaves = written.map(({ leaf }) => leaf);
    const boxes = merkleBoxesOf(map, first, leaves);
    await mapConcurrent(written, MAX_CONCURRENT_FRAGMENTS, async ({ finish }, index) => {
      await finish(itemAt(boxes, index));
      await context.done?.(itemAt(fragments, index));
    });
    return written;
  } finally {
    await Promise.allSettled([...open].map((file) => file.close()));
  }
}

/** The fragments of a rendition in playback order; while it is still being made, as they become whole. */
type FragmentSequence = Iterable<MediaPart> | AsyncIterable<MediaPart>;

/** Fragments of a group: while the last ones of it are finished, nothing else is read. */
const GROUP_SIZE = 32;

/**
 * Fragments wait for their Merkle boxes until their group is done, and where an output is sent as it is written, they
 * wait in memory: so a group ends when it reaches this size and has enough fragments to work on concurrently.
 */
const GROUP_LIMIT_BYTES = 24 * 1024 * 1024;
const MIN_GROUP_SIZE = 8;

/** Splits fragments into groups of neighbours that are signed together: the leaves of every proof are in one group. */
async function* groupsOf(
  fragments: FragmentSequence,
  levels: number,
  sizeOf: (path: string) => number,
): AsyncGenerator<readonly MediaPart[]> {
  let group: MediaPart[] = [];
  let bytes = 0;
  let count = 0;
  for await (const fragment of fragments) {
    group.push(fragment);
    bytes += fragment.range?.length ?? sizeOf(fragment.path);
    count += 1;
    const isFull = group.length >= GROUP_SIZE || (bytes >= GROUP_LIMIT_BYTES && group.length >= MIN_GROUP_SIZE);
    if (!isFull || count % 2 ** levels !== 0) continue;
    yield group;
    group = [];
    bytes = 0;
  }
  if (group.length > 0) yield group;
}

/** Fragments up to this size stay in memory until their group is signed: opening files costs more than the memory. */
const MAX_BUFFERED_FRAGMENT_BYTES = 256 * 1024;

/** A fragment that is written but for its Merkle box. */
interface WrittenFragment {
  readonly leaf: Uint8Array;
  readonly part: SignedPart;
  /** Writes the Merkle box and closes the file. */
  finish(merkleBox: Uint8Array): Promise<void>;
}

/** The init segment and the tracks that the fragments of a rendition belong to. */
type RenditionTracks = Pick<InitLayout, 'path' | 'trackIds' | 'sampleSizes'>;

/** Resources that the fragments of a group share. */
interface FragmentGroup {
  readonly init: RenditionTracks;
  /** Holds small fragments until all of the group are finished. */
  readonly arena: BufferArena;
  /** Files that are written as they are read, and that may be left unfinished. */
  readonly open: Set<FolderPart>;
}

/** Reads a fragment once, hashes what it becomes, and writes it with space for its Merkle box. */
async function writeFragment(
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
    const plan = planFragment(layout, boxSizeBytes, init.sampleSizes);
    const sizeBytes = outputSizeBytes(plan.plan);
    const path = valueAt(context.paths, partKey(part));
    const addedBytes = sizeBytes - rangeOf(part, source).length;
    if (bytes !== null) context.validated?.requireSame(part, contentOf(layout.boxes, bytes, reader.start));
    const written =
      bytes === null
        ? await streamFragment(plan, { part, source }, path, open, context)
        : composeFragment(plan, bytes, reader.start, arena.allocate(sizeBytes), path, context);
    context.wrote(sizeBytes);
    return { ...written, part: { source: part, path, addedBytes, merkleBoxSizeBytes: boxSizeBytes } };
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

/** Applies the plan of a small fragment in memory, where it stays until it is finished: its file is opened and written once. */
function composeFragment(
  { plan, merkleBoxOffset }: FragmentPlan,
  bytes: Buffer,
  sourceOffset: number,
  composed: Buffer,
  path: string,
  { writer, signal }: SigningContext,
): Pick<WrittenFragment, 'leaf' | 'finish'> {
  return {
    leaf: applyInMemory(plan, bytes, sourceOffset, composed),
    async finish(merkleBox) {
      composed.set(merkleBox, merkleBoxOffset);
      const file = await writer.create(path, signal);
      try {
        await file.write(composed, 0, signal);
      } finally {
        await file.close();
      }
    },
  };
}

/** Writes a fragment as it is read. */
async function streamFragment(
  { plan, merkleBoxOffset }: FragmentPlan,
  { part, source }: { readonly part: MediaPart; readonly source: ByteSource },
  path: string,
  open: Set<FolderPart>,
  { writer, signal, validated }: SigningContext,
): Promise<Pick<WrittenFragment, 'leaf' | 'finish'>> {
  const file = await writer.create(path, signal);
  open.add(file);
  const digests = await executePlan(plan, source, file, { signal, digestSource: validated !== undefined });
  validated?.requireSame(part, digests.source);
  return {
    leaf: digests.flat,
    async finish(merkleBox) {
      await file.write(merkleBox, merkleBoxOffset, signal);
      await file.close();
      open.delete(file);
    },
  };
}

/** Throws `FRAGMENT_MALFORMED` for a fragment of another track: no player can play it with this init segment. */
function refuseOtherTracks({ path, moof, trackIds }: FragmentLayout, init: RenditionTracks): void {
  const foreignTrack = trackIds.find((trackId) => !init.trackIds.includes(trackId));
  if (foreignTrack === undefined) return;
  const problem = `it is of track ${foreignTrack}, and its init segment ${JSON.stringify(init.path)} has only ${init.trackIds.join(', ')}`;
  throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'moof', offset: moof.offset, problem });
}
