import { partitionPoint } from '#bytes/partition-point.ts';
import { AppError } from '#errors/app-error.ts';
import { BOX_HEADER_SIZE_BYTES, type BoxHeader, makeBoxHeader, printableType } from './boxes.ts';
import type { IsobmffLayout } from './layout.ts';
import type { BoxLocation, OffsetField, OffsetTable, TrailingBytes } from './stored-offsets.ts';

const MAX_32_BIT_OFFSET = 0xffff_ffff;
/**
 * Largest number of rounds in which tables grow: one that grows moves others, which may overflow then. After it
 * all tables grow.
 */
const MAX_GROWTH_ROUNDS = 8;
/** Size of a `co64` box up to its first offset: header, version and flags, entry count. */
const CO64_HEAD_SIZE_BYTES = BOX_HEADER_SIZE_BYTES + 8;

/** Edit of a file that moves the bytes behind it. Offsets count from the start of the source, sizes are in bytes. */
export interface Edit {
  readonly offset: number;
  /** Number of source bytes removed at `offset`. */
  readonly removedBytes: number;
  /** Number of bytes inserted instead. */
  readonly insertedBytes: number;
}

/** Bytes that replace `length` bytes of the source. */
export interface Replacement {
  readonly offset: number;
  readonly length: number;
  readonly bytes: Buffer;
}

type GrowableTable = OffsetTable & { readonly growable: NonNullable<OffsetTable['growable']> };

/**
 * Returns the replacements, in ascending order, that make a file's stored offsets right once it has been edited. Where
 * chunk offsets pass 4 GiB, their `stco` box becomes a `co64` box (ISO/IEC 14496-12 §8.7.5). Trailing bytes of a box
 * get the header of a `free` box. The sizes of the boxes that contain either are updated. Throws
 * `BMFF_OFFSET_OVERFLOW`.
 */
export function moveOffsets({ offsets, sizeBytes }: IsobmffLayout, edits: readonly Edit[]): Replacement[] {
  const { trailingBytes } = offsets;
  const allEdits = [...edits, ...trailingBytes.map(({ offset }) => insertionAt(offset, BOX_HEADER_SIZE_BYTES))];
  const grown = tablesToGrow(offsets.tables.filter(isGrowable), allEdits, sizeBytes);
  const shift = shiftWith(grown, allEdits, sizeBytes);
  const kept = offsets.tables.filter((table) => !grown.has(table as GrowableTable));
  const growths = [
    ...[...grown].map((table) => ({ ancestors: table.growable.ancestors, sizeBytes: growthOf(table) })),
    ...trailingBytes.map(({ ancestors }) => ({ ancestors, sizeBytes: BOX_HEADER_SIZE_BYTES })),
  ];
  return [
    ...kept.map((table) => shiftTable(table, shift)),
    ...offsets.fields.map((field) => shiftField(field, shift)),
    ...[...grown].map((table) => grownTable(table, shift)),
    ...trailingBytes.map(freeHeaderBefore),
    ...sizesAround(growths),
  ]
    .filter((replacement) => replacement !== null)
    .sort((a, b) => a.offset - b.offset);
}

function insertionAt(offset: number, sizeBytes: number): Edit {
  return { offset, removedBytes: 0, insertedBytes: sizeBytes };
}

/** Returns the header that wraps trailing bytes in a `free` box. */
function freeHeaderBefore({ offset, sizeBytes }: TrailingBytes): Replacement {
  return { offset, length: 0, bytes: makeBoxHeader('free', BOX_HEADER_SIZE_BYTES + sizeBytes) };
}

function isGrowable(table: OffsetTable): table is GrowableTable {
  return table.growable !== null;
}

function tablesToGrow(
  tables: readonly GrowableTable[],
  edits: readonly Edit[],
  sizeBytes: number,
): ReadonlySet<GrowableTable> {
  const grown = new Set<GrowableTable>();
  for (let round = 0; round < MAX_GROWTH_ROUNDS; round += 1) {
    const shift = shiftWith(grown, edits, sizeBytes);
    if (shift.outputSizeBytes <= MAX_32_BIT_OFFSET) return grown;
    const overflowing = tables.filter((table) => !grown.has(table) && overflows(table, shift));
    if (overflowing.length === 0) return grown;
    for (const table of overflowing) grown.add(table);
  }
  return new Set(tables);
}

function shiftWith(grown: ReadonlySet<GrowableTable>, edits: readonly Edit[], sizeBytes: number): OffsetShift {
  const growths = [...grown].map((table) => {
    const { box } = table.growable;
    return insertionAt(box.offset + box.sizeBytes, growthOf(table));
  });
  return new OffsetShift([...edits, ...growths], sizeBytes);
}

function overflows({ bytes }: OffsetTable, shift: OffsetShift): boolean {
  for (let at = 0; at < bytes.length; at += 4) {
    const offset = bytes.readUInt32BE(at);
    if (shift.pointsToByte(offset) && offset + shift.deltaAt(offset) > MAX_32_BIT_OFFSET) return true;
  }
  return false;
}

function growthOf({ bytes, growable }: GrowableTable): number {
  return CO64_HEAD_SIZE_BYTES + 2 * bytes.length - growable.box.sizeBytes;
}

/** Returns the `co64` box (ISO/IEC 14496-12 §8.7.5) that replaces an `stco` box. */
function grownTable({ bytes, growable }: GrowableTable, shift: OffsetShift): Replacement {
  const co64 = Buffer.alloc(CO64_HEAD_SIZE_BYTES + 2 * bytes.length);
  makeBoxHeader('co64', co64.length).copy(co64);
  co64.writeUInt32BE(bytes.length / 4, CO64_HEAD_SIZE_BYTES - 4);
  for (let at = 0; at < bytes.length; at += 4) {
    const offset = bytes.readUInt32BE(at);
    writeOffset(co64, CO64_HEAD_SIZE_BYTES + 2 * at, offset + shift.deltaAt(offset), 8);
  }
  const { offset, sizeBytes } = growable.box;
  return { offset, length: sizeBytes, bytes: co64 };
}

/** Number of bytes by which something has grown, and the boxes that contain it. */
interface Growth {
  readonly ancestors: readonly BoxHeader[];
  readonly sizeBytes: number;
}

/** Returns the new size fields of all boxes that contain something that has grown. */
function sizesAround(grown: readonly Growth[]): Replacement[] {
  const growths = new Map<number, { box: BoxHeader; growth: number }>();
  for (const { ancestors, sizeBytes } of grown) {
    for (const box of ancestors) {
      const growth = (growths.get(box.offset)?.growth ?? 0) + sizeBytes;
      growths.set(box.offset, { box, growth });
    }
  }
  return [...growths.values()]
    .filter(({ box }) => box.sizeForm !== 'to-end')
    .map(({ box, growth }) => resized(box, box.sizeBytes + growth));
}

/** Returns the size field of a box with another size, in the form that it has. */
export function resized({ offset, sizeForm }: BoxHeader, sizeBytes: number): Replacement {
  const isLarge = sizeForm === 'large';
  const bytes = Buffer.alloc(isLarge ? 8 : 4);
  writeOffset(bytes, 0, sizeBytes, bytes.length);
  return { offset: offset + (isLarge ? BOX_HEADER_SIZE_BYTES : 0), length: bytes.length, bytes };
}

/** Mapping of source offsets to output offsets, given all edits. */
export class OffsetShift {
  readonly #sizeBytes: number;
  /** Edits in ascending order, each with the distance by which the bytes behind it move. */
  readonly #steps: { readonly start: number; readonly keptFrom: number; readonly delta: number }[] = [];

  /** Takes edits in any order; one that removes bytes must not overlap another. */
  constructor(edits: readonly Edit[], sourceSizeBytes: number) {
    this.#sizeBytes = sourceSizeBytes;
    let delta = 0;
    for (const edit of edits.toSorted((a, b) => a.offset - b.offset)) {
      delta += edit.insertedBytes - edit.removedBytes;
      this.#steps.push({ start: edit.offset, keptFrom: edit.offset + edit.removedBytes, delta });
    }
  }

  /** Size of the output in bytes. */
  get outputSizeBytes(): number {
    return this.#sizeBytes + (this.#steps.at(-1)?.delta ?? 0);
  }

  /** Tells whether an offset points to a byte of the source. 0 does not: writers use it for "none". */
  pointsToByte(offset: number): boolean {
    return offset > 0 && offset < this.#sizeBytes;
  }

  /**
   * Returns the distance in bytes by which the target of an offset moves. An offset past the end, as a truncated file
   * has it, moves too, so that it does not point into the output. An offset of 0, or into removed bytes, does not move.
   */
  deltaAt(offset: number): number {
    if (offset <= 0 || offset > Number.MAX_SAFE_INTEGER) return 0;
    const step = this.#steps[partitionPoint(this.#steps, ({ start }) => start > offset) - 1];
    return step === undefined || offset < step.keptFrom ? 0 : step.delta;
  }
}

/** Returns the table with its offsets moved, or null where none moves. Throws `BMFF_OFFSET_OVERFLOW`. */
function shiftTable(table: OffsetTable, shift: OffsetShift): Replacement | null {
  const { bytes, strideBytes, widthBytes, location } = table;
  let moved: Buffer | null = null;
  for (let at = 0; at < bytes.length; at += strideBytes) {
    const offset = readOffset(bytes, at, widthBytes);
    const delta = shift.deltaAt(offset);
    if (delta === 0 || !canMove(location, offset, delta, widthBytes, shift)) continue;
    moved ??= Buffer.from(bytes);
    writeOffset(moved, at, offset + delta, widthBytes);
  }
  return moved === null ? null : { offset: table.position, length: bytes.length, bytes: moved };
}

/**
 * Returns the field with its offset moved, or null where it does not move. Throws `BMFF_OFFSET_OVERFLOW`, also for
 * targets that move apart.
 */
function shiftField(field: OffsetField, shift: OffsetShift): Replacement | null {
  const [first, ...others] = field.targets.map(({ start }) => shift.deltaAt(start));
  if (first === undefined || others.some((delta) => delta !== first)) throw overflowAt(field.location);
  if (first === 0) return null;
  if (!fits(field.value + first, field.widthBytes)) throw overflowAt(field.location);
  const bytes = Buffer.alloc(field.widthBytes);
  writeOffset(bytes, 0, field.value + first, field.widthBytes);
  return { offset: field.position, length: field.widthBytes, bytes };
}

function readOffset(bytes: Buffer, position: number, widthBytes: number): number {
  if (widthBytes <= 4) return bytes.readUIntBE(position, widthBytes);
  return bytes.readUInt32BE(position) * 2 ** 32 + bytes.readUInt32BE(position + 4);
}

function writeOffset(bytes: Buffer, position: number, value: number, widthBytes: number): void {
  if (widthBytes <= 4) {
    bytes.writeUIntBE(value, position, widthBytes);
  } else {
    bytes.writeUInt32BE(Math.floor(value / 2 ** 32), position);
    bytes.writeUInt32BE(value % 2 ** 32, position + 4);
  }
}

/**
 * Tells whether an offset fits its width once moved. Throws `BMFF_OFFSET_OVERFLOW` if not, unless it
 * points nowhere anyway.
 */
function canMove(
  location: BoxLocation,
  offset: number,
  delta: number,
  widthBytes: number,
  shift: OffsetShift,
): boolean {
  if (fits(offset + delta, widthBytes)) return true;
  if (shift.pointsToByte(offset)) throw overflowAt(location);
  return false;
}

function fits(value: number, widthBytes: number): boolean {
  return value >= 0 && value < 2 ** (8 * widthBytes);
}

function overflowAt({ fileName, type, offset }: BoxLocation): AppError {
  return new AppError('BMFF_OFFSET_OVERFLOW', { name: fileName, boxType: printableType(type), offset });
}
