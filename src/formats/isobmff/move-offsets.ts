import { BOX_HEADER_SIZE_BYTES, type BoxHeader } from './box.ts';
import type { IsobmffLayout } from './layout.ts';
import { type Edit, OffsetShift } from './offset-shift.ts';
import {
  type LooseEnd,
  type OffsetTable,
  type Replacement,
  shiftField,
  shiftTable,
  writeOffset,
} from './stored-offsets.ts';

const LARGEST_32_BIT_OFFSET = 0xffff_ffff;
/** A table that grows moves others, which may have to grow then too. After so many rounds all of them do. */
const MAX_GROWTH_ROUNDS = 8;
/** A `co64` box up to its first offset: header, version and flags, entry count. */
const CO64_HEAD_SIZE_BYTES = BOX_HEADER_SIZE_BYTES + 8;

type GrowableTable = OffsetTable & { readonly growable: NonNullable<OffsetTable['growable']> };

/**
 * What has to stand in the place of a file's stored offsets once it has been edited, in ascending order. Where chunk
 * offsets pass 4 GiB, their `stco` box becomes a larger `co64` box. What is no box at the end of one gets into a `free`
 * box. The boxes around both say so.
 */
export function moveOffsets({ offsets, sizeBytes }: IsobmffLayout, edits: readonly Edit[]): Replacement[] {
  const { looseEnds } = offsets;
  const allEdits = [...edits, ...looseEnds.map(({ offset }) => insertionAt(offset, BOX_HEADER_SIZE_BYTES))];
  const grown = tablesToGrow(offsets.tables.filter(isGrowable), allEdits, sizeBytes);
  const shift = shiftWith(grown, allEdits, sizeBytes);
  const kept = offsets.tables.filter((table) => !grown.has(table as GrowableTable));
  const growths = [
    ...[...grown].map((table) => ({ around: table.growable.ancestors, sizeBytes: growthOf(table) })),
    ...looseEnds.map(({ around }) => ({ around, sizeBytes: BOX_HEADER_SIZE_BYTES })),
  ];
  return [
    ...kept.map((table) => shiftTable(table, shift)),
    ...offsets.fields.map((field) => shiftField(field, shift)),
    ...[...grown].map((table) => grownTable(table, shift)),
    ...looseEnds.map(headerBefore),
    ...sizesAround(growths),
  ]
    .filter((replacement) => replacement !== null)
    .sort((a, b) => a.offset - b.offset);
}

function insertionAt(offset: number, sizeBytes: number): Edit {
  return { offset, removedBytes: 0, insertedBytes: sizeBytes };
}

/** The header of a `free` box around what follows. */
function headerBefore({ offset, sizeBytes }: LooseEnd): Replacement {
  const bytes = Buffer.alloc(BOX_HEADER_SIZE_BYTES);
  bytes.writeUInt32BE(BOX_HEADER_SIZE_BYTES + sizeBytes, 0);
  bytes.write('free', 4, 'latin1');
  return { offset, length: 0, bytes };
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
    if (shift.outputSizeBytes <= LARGEST_32_BIT_OFFSET) return grown;
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
    if (shift.leadsToByte(offset) && offset + shift.deltaAt(offset) > LARGEST_32_BIT_OFFSET) return true;
  }
  return false;
}

function growthOf({ bytes, growable }: GrowableTable): number {
  return CO64_HEAD_SIZE_BYTES + 2 * bytes.length - growable.box.sizeBytes;
}

/** The `co64` box (ISO/IEC 14496-12 §8.7.5) that takes the place of an `stco` box. */
function grownTable({ bytes, growable }: GrowableTable, shift: OffsetShift): Replacement {
  const co64 = Buffer.alloc(CO64_HEAD_SIZE_BYTES + 2 * bytes.length);
  co64.writeUInt32BE(co64.length, 0);
  co64.write('co64', 4, 'latin1');
  co64.writeUInt32BE(bytes.length / 4, CO64_HEAD_SIZE_BYTES - 4);
  for (let at = 0; at < bytes.length; at += 4) {
    const offset = bytes.readUInt32BE(at);
    writeOffset(co64, CO64_HEAD_SIZE_BYTES + 2 * at, offset + shift.deltaAt(offset), 8);
  }
  const { offset, sizeBytes } = growable.box;
  return { offset, length: sizeBytes, bytes: co64 };
}

/** Something that has become larger, and the boxes around it. */
interface Growth {
  readonly around: readonly BoxHeader[];
  readonly sizeBytes: number;
}

/** The new size fields of all boxes around what has grown. */
function sizesAround(grown: readonly Growth[]): Replacement[] {
  const growths = new Map<number, { box: BoxHeader; growth: number }>();
  for (const { around, sizeBytes } of grown) {
    for (const box of around) {
      const growth = (growths.get(box.offset)?.growth ?? 0) + sizeBytes;
      growths.set(box.offset, { box, growth });
    }
  }
  return [...growths.values()]
    .filter(({ box }) => box.sizeForm !== 'to-end')
    .map(({ box, growth }) => {
      const isLarge = box.sizeForm === 'large';
      const bytes = Buffer.alloc(isLarge ? 8 : 4);
      writeOffset(bytes, 0, box.sizeBytes + growth, bytes.length);
      return { offset: box.offset + (isLarge ? BOX_HEADER_SIZE_BYTES : 0), length: bytes.length, bytes };
    });
}
