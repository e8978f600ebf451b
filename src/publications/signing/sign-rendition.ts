import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import { digestPlan, executePlan, fillHole } from '#bytes/execute-plan.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { outputSizeBytes, type SplicePlan } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { type MediaPart, partKey, type Rendition } from '../publication.ts';
import { type FragmentLayout, readFragmentLayout } from './fragment-layout.ts';
import { type FragmentOutput, heldOutput, heldSource, streamedOutput } from './held-fragment.ts';
import { type InitLayout, readInitLayout } from './init-layout.ts';
import { type MapPlan, merkleBoxesOf, merkleBoxSizeBytes } from './merkle-maps.ts';
import type { OutputPaths } from './output-paths.ts';
import { planFragment } from './plan-fragment.ts';
import { planInit } from './plan-init.ts';
import type { SignedPart } from './signed-part.ts';
import { readerOf } from './top-boxes.ts';

/** Fragments of one rendition that are read, hashed and written at once. */
const FRAGMENTS_AT_ONCE = 8;
/** A group holds all leaves that the proofs of its fragments are made of, or this many where there are no proofs. */
const SMALLEST_GROUP = 32;
/** A fragment up to this size is held in memory until its group is done: the files cost more than the bytes. */
const HELD_FRAGMENT_MAX_BYTES = 256 * 1024;

/** Where the files of a signed publication go. */
export interface PublicationWriter {
  create(path: string, signal: AbortSignal): Promise<PartWriter>;
}

/** One file of the output; `close` hands it over. */
export interface PartWriter {
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** What the parts of a publication are signed with and from. */
export interface SigningContext {
  readonly folder: SourceFolder;
  readonly writer: PublicationWriter;
  readonly paths: OutputPaths;
  /** Room for the manifest in every init segment, in bytes. */
  readonly manifestSizeBytes: number;
  readonly signal: AbortSignal;
  /** Called with output bytes as they are written. */
  readonly wrote: (bytes: number) => void;
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
  fragments: readonly MediaPart[],
  init: InitLayout,
  map: MapPlan,
  context: SigningContext,
): Promise<SignedFragments> {
  const leaves: Uint8Array[] = [];
  const parts: SignedPart[] = [];
  const groupSize = Math.max(2 ** map.levels, SMALLEST_GROUP);
  for (let first = 0; first < fragments.length; first += groupSize) {
    const group = await signGroup(fragments.slice(first, first + groupSize), first, init, map, context);
    for (const { leaf, part } of group) {
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
  { folder, paths, manifestSizeBytes, signal }: SigningContext,
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
  { folder, writer, signal, wrote }: SigningContext,
): Promise<void> {
  await withSource(folder, part.source, signal, async (source) => {
    const output = await writer.create(part.path, signal);
    try {
      await executePlan(plan, source, output, { signal });
      await fillHole(plan, output, manifest, signal);
    } finally {
      await output.close();
    }
    wrote(outputSizeBytes(plan));
  });
}

interface WrittenFragment {
  readonly output: FragmentOutput;
  readonly merkleBoxOffset: number;
  readonly leaf: Uint8Array;
  readonly part: SignedPart;
}

/** Writes neighbouring fragments, and their Merkle boxes once all leaves that those are made of are known. */
async function signGroup(
  fragments: readonly MediaPart[],
  first: number,
  init: InitLayout,
  map: MapPlan,
  context: SigningContext,
): Promise<readonly WrittenFragment[]> {
  const open = new Set<FragmentOutput>();
  try {
    const written = await sideBySide(fragments, FRAGMENTS_AT_ONCE, (part, index) =>
      writeFragment(part, init, merkleBoxSizeBytes(map, first + index), open, context),
    );
    const boxes = merkleBoxesOf(
      map,
      first,
      written.map(({ leaf }) => leaf),
    );
    await sideBySide(written, FRAGMENTS_AT_ONCE, async ({ output, merkleBoxOffset }, index) => {
      await output.finish(boxes[index] as Uint8Array, merkleBoxOffset);
      open.delete(output);
    });
    return written;
  } finally {
    await Promise.allSettled([...open].map((output) => output.close()));
  }
}

async function writeFragment(
  part: MediaPart,
  init: InitLayout,
  boxSizeBytes: number,
  open: Set<FragmentOutput>,
  context: SigningContext,
): Promise<WrittenFragment> {
  const { folder, paths, signal } = context;
  return await withSource(folder, part, signal, async (opened) => {
    const range = part.range ?? { offset: 0, length: opened.sizeBytes };
    const isHeld = range.length <= HELD_FRAGMENT_MAX_BYTES;
    const source = isHeld ? await heldSource(opened, range, signal) : opened;
    const layout = await readFragmentLayout(await readerOf(source, part, signal));
    refuseOtherTracks(layout, init);
    const { plan, merkleBoxOffset } = planFragment(layout, boxSizeBytes);
    const sizeBytes = outputSizeBytes(plan);
    const signed = signedPart(part, paths, sizeBytes, source, boxSizeBytes);
    const output = isHeld
      ? heldOutput(signed.path, sizeBytes, context.writer, signal)
      : await streamedOutput(signed.path, context.writer, signal);
    open.add(output);
    const { flat: leaf } = await executePlan(plan, source, output, { signal });
    context.wrote(sizeBytes);
    return { output, merkleBoxOffset, leaf, part: signed };
  });
}

/** A playlist that gives a fragment to the wrong init segment names something that no player can play. */
function refuseOtherTracks({ path, moof, trackIds }: FragmentLayout, init: InitLayout): void {
  const stranger = trackIds.find((trackId) => !init.trackIds.includes(trackId));
  if (stranger === undefined) return;
  const problem = `it is of track ${stranger}, and its init segment ${JSON.stringify(init.path)} has only ${init.trackIds.join(', ')}`;
  throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'moof', offset: moof.offset, problem });
}

function signedPart(
  source: MediaPart,
  paths: OutputPaths,
  outputBytes: number,
  { sizeBytes: fileBytes }: ByteSource,
  merkleBoxBytes: number,
): SignedPart {
  const path = paths.get(partKey(source));
  assert(path !== undefined, 'every part of the publication has a path in the output');
  const addedBytes = outputBytes - (source.range?.length ?? fileBytes);
  return { source, path, addedBytes, merkleBoxSizeBytes: merkleBoxBytes };
}

async function withSource<T>(
  folder: SourceFolder,
  { path }: MediaPart,
  signal: AbortSignal,
  use: (source: ByteSource) => Promise<T>,
): Promise<T> {
  const source = await folder.open(path, signal);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}
