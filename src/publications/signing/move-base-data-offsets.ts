import { AppError } from '#errors/app-error.ts';
import type { FragmentLayout } from './fragment-layout.ts';

/** Flags of a track fragment header (ISO/IEC 14496-12 §8.8.7). */
const BASE_DATA_OFFSET_PRESENT = 0x000001;
const DEFAULT_BASE_IS_MOOF = 0x020000;
/** Length of the field, and of the empty `free` box that takes its place. */
const FIELD_SIZE_BYTES = 8;
const EMPTY_FREE_BOX = Buffer.from('0000000866726565', 'hex');
/** From the field back to the start of its box: track id, version and flags, type, size. */
const FIELD_OFFSET_BYTES = 16;

/**
 * The moof of a fragment that stores base data offsets, for its place in the output; null where nothing changes. They
 * are absolute, and what they lead to moves as far as the moof does. In a fragment that becomes a file of its own they
 * are said relative to the moof instead, where they lead to it: players read such files one behind the other.
 */
export function moveBaseDataOffsets(layout: FragmentLayout, moofPosition: number): Uint8Array | null {
  const { moofWithPositions, moof, isRange } = layout;
  const shift = BigInt(moofPosition - moof.offset);
  if (moofWithPositions === null || shift === 0n) return null;
  const bytes = Buffer.from(moofWithPositions.bytes);
  for (const at of moofWithPositions.baseDataOffsetsAt) {
    const base = bytes.readBigUInt64BE(at);
    if (isRange && base === BigInt(moof.offset)) makeRelative(bytes, at);
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
