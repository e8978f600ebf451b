import { AppError } from '#errors/app-error.ts';
import { type BoxHeader, shownType } from './box.ts';
import type { OffsetShift } from './offset-shift.ts';

/** Where a box stands, for error messages. */
export interface BoxPlace {
  readonly fileName: string;
  readonly type: string;
  readonly offset: number;
}

/** A run of absolute file offsets in a box, one every `strideBytes`. */
export interface OffsetTable {
  readonly place: BoxPlace;
  /** Where the first offset is stored, from the start of the file. */
  readonly position: number;
  /** From the first offset to the end of the last. */
  readonly bytes: Buffer;
  readonly widthBytes: 4 | 8;
  readonly strideBytes: number;
  /** Where the offsets are 32 bits wide and the box can become one with 64: the box and those around it. */
  readonly growable: { readonly box: BoxHeader; readonly ancestors: readonly BoxHeader[] } | null;
}

/** A single absolute file offset, or a base that others count from. */
export interface OffsetField {
  readonly place: BoxPlace;
  /** Where it is stored, from the start of the file. */
  readonly position: number;
  readonly widthBytes: number;
  readonly value: number;
  /** The bytes that it leads to, which decide how far it moves. */
  readonly targets: readonly number[];
}

/** What stands at the end of a box and is no box, though readers of C2PA take it for one. */
export interface LooseEnd {
  readonly offset: number;
  readonly sizeBytes: number;
  /** The boxes around it, the innermost first. */
  readonly around: readonly BoxHeader[];
}

/** All absolute offsets that a file stores, and what else must change with them. */
export interface StoredOffsets {
  readonly tables: readonly OffsetTable[];
  readonly fields: readonly OffsetField[];
  readonly looseEnds: readonly LooseEnd[];
}

/** Bytes that stand in the place of as many, or fewer, of the source. */
export interface Replacement {
  readonly offset: number;
  readonly length: number;
  readonly bytes: Buffer;
}

/** The table with every offset moved, or null where none moves. Throws where an offset no longer fits. */
export function shiftTable(table: OffsetTable, shift: OffsetShift): Replacement | null {
  const { bytes, strideBytes, widthBytes, place } = table;
  let moved: Buffer | null = null;
  for (let at = 0; at < bytes.length; at += strideBytes) {
    const offset = readOffset(bytes, at, widthBytes);
    const delta = shift.deltaAt(offset);
    if (delta === 0 || !canMove(place, offset, delta, widthBytes, shift)) continue;
    moved ??= Buffer.from(bytes);
    writeOffset(moved, at, offset + delta, widthBytes);
  }
  return moved === null ? null : { offset: table.position, length: bytes.length, bytes: moved };
}

/** The field with its offset moved, or null where it does not move. Throws where it cannot say where its targets are. */
export function shiftField(field: OffsetField, shift: OffsetShift): Replacement | null {
  const [first, ...others] = field.targets.map((target) => shift.deltaAt(target));
  if (first === undefined || others.some((delta) => delta !== first)) throw overflowAt(field.place);
  if (first === 0) return null;
  if (!fits(field.value + first, field.widthBytes)) throw overflowAt(field.place);
  const bytes = Buffer.alloc(field.widthBytes);
  writeOffset(bytes, 0, field.value + first, field.widthBytes);
  return { offset: field.position, length: field.widthBytes, bytes };
}

export function readOffset(bytes: Buffer, position: number, widthBytes: number): number {
  if (widthBytes <= 4) return bytes.readUIntBE(position, widthBytes);
  return bytes.readUInt32BE(position) * 2 ** 32 + bytes.readUInt32BE(position + 4);
}

export function writeOffset(bytes: Buffer, position: number, value: number, widthBytes: number): void {
  if (widthBytes <= 4) {
    bytes.writeUIntBE(value, position, widthBytes);
  } else {
    bytes.writeUInt32BE(Math.floor(value / 2 ** 32), position);
    bytes.writeUInt32BE(value % 2 ** 32, position + 4);
  }
}

/** An offset that does not fit once moved is refused, unless it leads nowhere in any case. */
function canMove(place: BoxPlace, offset: number, delta: number, widthBytes: number, shift: OffsetShift): boolean {
  if (fits(offset + delta, widthBytes)) return true;
  if (shift.leadsToByte(offset)) throw overflowAt(place);
  return false;
}

function fits(value: number, widthBytes: number): boolean {
  return value >= 0 && value < 2 ** (8 * widthBytes);
}

function overflowAt({ fileName, type, offset }: BoxPlace): AppError {
  return new AppError('BMFF_OFFSET_OVERFLOW', { name: fileName, boxType: shownType(type), offset });
}
