import assert from 'node:assert/strict';
import type { Splice, SplicePlan } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import {
  BMFF_HASH_ALGORITHM,
  Box,
  c2paUuidBoxHead,
  type DefaultSizes,
  isExcludedType,
  movedAuxiliary,
  offsetMark,
  parseBoxHeader,
  parseSegmentIndex,
  straySamplesOfFragment,
} from '#formats/isobmff-boxes.ts';
import { type FragmentLayout, type OutputPositions, outputPositions } from '../fragments/fragment-layout.ts';
import type { InitLayout } from '../fragments/init-layout.ts';
import { refuseStray, type TopBox } from '../fragments/top-boxes.ts';

/** A fragment's output: what to write, and where the Merkle box goes once its proof is known. */
export interface FragmentPlan {
  readonly plan: SplicePlan;
  /** Position of the Merkle box in the output, in bytes: the plan's hole. */
  readonly merkleBoxOffset: number;
}

/**
 * Plans the signed form of a fragment: earlier Merkle boxes out, space for a new one immediately before the moof, and
 * every stored offset and size moved accordingly. The digest of the plan is the fragment's leaf, whatever the Merkle box
 * will say, because the box is excluded from the hash and only its size moves what follows. `sampleSizes` are those of its init
 * segment, as far as they are known. Throws `FRAGMENT_MALFORMED` where samples lie elsewhere than in its mdat.
 */
export function planFragment(
  layout: FragmentLayout,
  merkleBoxSizeBytes: number,
  sampleSizes: DefaultSizes,
): FragmentPlan {
  const positions = outputPositions(layout, merkleBoxSizeBytes);
  const splices: Splice[] = [];
  let merkleBoxOffset = -1;
  for (const box of layout.boxes) {
    const position = positions.ofBox(box);
    if (box === layout.moof) {
      merkleBoxOffset = position - merkleBoxSizeBytes;
      splices.push({ kind: 'hole', length: merkleBoxSizeBytes });
    }
    const changed = rewritten(layout, box, positions);
    if (box === layout.moof) refuseStraySamples(layout, changed?.bytes, positions, sampleSizes);
    splices.push(...hashedBox(box, position, changed));
  }
  assert(merkleBoxOffset >= 0, 'the layout has a moof');
  return { plan: { splices, hashing: { algorithm: BMFF_HASH_ALGORITHM } }, merkleBoxOffset };
}

/** Returns a box that has to change, or null where it is copied. */
function rewritten(layout: FragmentLayout, box: TopBox, positions: OutputPositions): ChangedBox | null {
  if (box === layout.moof) {
    const bytes = moveBaseDataOffsets(layout, positions.ofBox(box));
    return bytes === null ? null : { bytes, original: layout.moofBox.bytes };
  }
  const index = layout.indexes.get(box.offset);
  if (index === undefined) return null;
  return { bytes: moveSegmentIndex(index, box, positions, layout.path), original: index };
}

/** Refuses a fragment whose moof, as it is written, leads players elsewhere than into its mdat: all in one that stays counts from it. */
function refuseStraySamples(
  { path: name, moof, moofBox, mdat }: FragmentLayout,
  changed: Buffer | undefined,
  positions: OutputPositions,
  sampleSizes: DefaultSizes,
): void {
  const at = positions.ofBox(moof);
  const written =
    changed === undefined ? moofBox : new Box(name, parseBoxHeader(changed, at, at + moof.sizeBytes), changed);
  const start = written.header.offset + positions.ofBox(mdat) - at;
  const media = { start: start + mdat.headerSizeBytes, end: start + mdat.sizeBytes };
  const stray = straySamplesOfFragment(written, [media], sampleSizes);
  if (stray !== null) refuseStray({ name }, { ...stray, offset: moof.offset });
}

/** A file type box for init segments that have none: readers look for the manifest behind it. */
const DEFAULT_FTYP = Buffer.from('00000014667479706973_6f36_00000000_69736f36'.replaceAll('_', ''), 'hex');

/**
 * Plans the signed form of an init segment: the manifest box after ftyp, earlier ones left out. The plan's digest is the
 * `initHash`; it depends on the manifest's size, not on the manifest.
 */
export function planInit(layout: InitLayout, manifestSizeBytes: number): SplicePlan {
  const header = c2paUuidBoxHead('manifest', manifestSizeBytes);
  const splices: Splice[] = [];
  let position = 0;
  const addManifest = (): void => {
    splices.push({ kind: 'insert', bytes: header, into: 'none' }, { kind: 'hole', length: manifestSizeBytes });
    position += header.length + manifestSizeBytes;
  };
  if (layout.boxes[0]?.type !== 'ftyp') {
    splices.push({ kind: 'insert', bytes: DEFAULT_FTYP, into: 'none' });
    position += DEFAULT_FTYP.length;
    addManifest();
  }
  for (const box of layout.boxes) {
    // An index of the file that it was a range of says nothing true about a file of its own.
    if (layout.isRange && box.type === 'sidx') continue;
    splices.push(...hashedBox(box, position, movedMovie(layout, box, position)));
    position += box.sizeBytes;
    if (box.type === 'ftyp') addManifest();
  }
  return { splices, hashing: { algorithm: BMFF_HASH_ALGORITHM } };
}

function movedMovie({ offsetMovie }: InitLayout, { offset }: TopBox, position: number): ChangedBox | null {
  if (offsetMovie?.header.offset !== offset) return null;
  const bytes = movedAuxiliary(offsetMovie, position - offset);
  return bytes === null ? null : { bytes, original: offsetMovie.bytes };
}

/** The bytes of a box as it is written, and as it was read. */
interface ChangedBox {
  readonly bytes: Buffer;
  readonly original: Uint8Array;
}

/**
 * Returns the splices of one top-level box of an output as `c2pa.hash.bmff.v3` hashes it: its offset in the output as
 * eight bytes, then the box. `changed` stands in for the box where it is not copied as it is; the size stays.
 */
function hashedBox(box: TopBox, position: number, changed: ChangedBox | null): Splice[] {
  const into = isExcludedType(box.type) ? 'none' : 'flat';
  const splice: Splice =
    changed === null
      ? { kind: 'copy', offset: box.offset, length: box.sizeBytes, into }
      : { kind: 'insert', ...changed, into };
  // Fewer than eight bytes at the end are no box and have no offset marker.
  return into === 'none' || box.type === '' ? [splice] : [{ kind: 'mark', bytes: offsetMark(position) }, splice];
}

/** Flags of a track fragment header (ISO/IEC 14496-12 §8.8.7). */
const BASE_DATA_OFFSET_PRESENT = 0x000001;
const DEFAULT_BASE_IS_MOOF = 0x020000;
/** Length of the field, and of the empty `free` box that takes its place. */
const FIELD_SIZE_BYTES = 8;
const EMPTY_FREE_BOX = Buffer.from('0000000866726565', 'hex');
/** From the field back to the start of its box: track id, version and flags, type, size. */
const FIELD_OFFSET_BYTES = 16;

/**
 * Returns the moof of a fragment that stores base data offsets, for its position in the output; null when nothing
 * changes. They are absolute, and what they lead to moves as far as the moof does. In a fragment that becomes a file of
 * its own they are said relative to the moof instead, where they lead to it: players read such files one behind the
 * other. So they are in a file that was cut out of a larger one, where they count from the start of that.
 */
function moveBaseDataOffsets(layout: FragmentLayout, moofPosition: number): Buffer | null {
  const { moofPositions, moofBox, moof, isRange } = layout;
  const shift = BigInt(moofPosition - moof.offset);
  if (moofPositions === null) return null;
  const bytes = Buffer.from(moofBox.bytes);
  for (const at of moofPositions.baseDataOffsetsAt) {
    const base = bytes.readBigUInt64BE(at);
    const isOfMoof = base === BigInt(moof.offset) ? isRange : moofPositions.countsFromMoof;
    if (isOfMoof) makeRelative(bytes, at);
    else bytes.writeBigUInt64BE(moved(base + shift, layout, at), at);
  }
  return bytes;
}

function moved(base: bigint, { path, moof }: FragmentLayout, at: number): bigint {
  if (base >= 0n && base <= 0xffff_ffff_ffff_ffffn) return base;
  const problem = 'its base data offset leads out of the file';
  throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'tfhd', offset: moof.offset + at, problem });
}

/** Takes the field out of its tfhd and puts an empty box behind that, so that the size around them stays. */
function makeRelative(moof: Buffer, fieldAt: number): void {
  const start = fieldAt - FIELD_OFFSET_BYTES;
  const sizeBytes = moof.readUInt32BE(start);
  const end = start + sizeBytes;
  moof.copyWithin(fieldAt, fieldAt + FIELD_SIZE_BYTES, end);
  EMPTY_FREE_BOX.copy(moof, end - FIELD_SIZE_BYTES);
  moof.writeUInt32BE(sizeBytes - FIELD_SIZE_BYTES, start);
  const versionAndFlags = moof.readUInt32BE(start + 8);
  moof.writeUInt32BE(((versionAndFlags & ~BASE_DATA_OFFSET_PRESENT) | DEFAULT_BASE_IS_MOOF) >>> 0, start + 8);
}

/** `referenced_size` is 31 bits (ISO/IEC 14496-12 §8.16.3). */
const MAX_REFERENCED_SIZE = 0x7fff_ffff;
const REFERENCE_SIZE_BYTES = 12;

/**
 * Returns a segment index whose distances and sizes span what was inserted or left out. Its anchor and the end of every
 * reference are boundaries in the source; the difference of their new positions is the new size.
 */
function moveSegmentIndex(index: Buffer, box: TopBox, positions: OutputPositions, path: string): Buffer {
  const refuse = (problem: string): never => {
    throw new AppError('FRAGMENT_MALFORMED', { file: path, boxType: 'sidx', offset: box.offset, problem });
  };
  const bytes = Buffer.from(index);
  const { firstOffset, references } =
    parseSegmentIndex(index.subarray(box.headerSizeBytes)) ?? refuse('it is cut short');
  const isWide = bytes[box.headerSizeBytes] !== 0;
  const firstOffsetAt = box.headerSizeBytes + (isWide ? 20 : 16);
  const end = box.offset + box.sizeBytes;
  if (!Number.isSafeInteger(end + firstOffset)) refuse('its first offset cannot be right');
  let boundary = end + firstOffset;
  let start = positions.ofBoundary(boundary);
  const movedFirst = start - (positions.ofBox(box) + box.sizeBytes);
  if (movedFirst < 0) refuse('its first offset cannot be right');
  if (isWide) bytes.writeBigUInt64BE(BigInt(movedFirst), firstOffsetAt);
  else bytes.writeUInt32BE(movedFirst, firstOffsetAt);

  const referencesAt = firstOffsetAt + (isWide ? 12 : 8);
  for (const [position, { isIndex, sizeBytes }] of references.entries()) {
    boundary += sizeBytes;
    const next = positions.ofBoundary(boundary);
    if (next - start > MAX_REFERENCED_SIZE) refuse('a subsegment grows past what a segment index can say');
    const word = ((isIndex ? 0x8000_0000 : 0) | (next - start)) >>> 0;
    bytes.writeUInt32BE(word, referencesAt + position * REFERENCE_SIZE_BYTES);
    start = next;
  }
  return bytes;
}
