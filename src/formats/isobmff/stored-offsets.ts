import { AppError } from '#errors/app-error.ts';
import { type Box, type BoxFields, type BoxHeader, printableType } from './boxes.ts';

/** Largest number of offset tables of a file; each track has one or two. */
const MAX_TABLES = 200_000;
/** Largest number of targets of single offsets: one for each track of a fragment, and for each extent of an item. */
const MAX_FIELD_TARGETS = 1_000_000;
/** Largest number of boxes with trailing bytes; a track has one or two, if any. */
const MAX_TRAILING_BYTES_COUNT = 50_000;

/** Collects the absolute offsets of a file. Its methods throw `BMFF_TOO_MANY_OFFSETS` beyond the bounds above. */
export class OffsetCollector implements StoredOffsets {
  readonly tables: OffsetTable[] = [];
  readonly fields: OffsetField[] = [];
  readonly trailingBytes: TrailingBytes[] = [];
  #fieldTargetCount = 0;

  /**
   * Adds a copy of the table at the next field of a box. Throws `BMFF_BOX_MALFORMED` where the box ends before the
   * table.
   */
  addTable(
    box: Box,
    fields: BoxFields,
    shape: { count: number; widthBytes: 4 | 8; strideBytes?: number; isGrowable?: boolean },
  ): void {
    const { count, widthBytes, strideBytes = widthBytes, isGrowable = false } = shape;
    if (count === 0) return;
    const location = locationOf(box);
    if (this.tables.length === MAX_TABLES) throw tooMany(location, MAX_TABLES);
    const position = fields.offset;
    const bytes = Buffer.from(fields.bytes((count - 1) * strideBytes + widthBytes));
    const growable = isGrowable ? { box: box.header, ancestors: box.ancestors } : null;
    this.tables.push({ location, position, bytes, widthBytes, strideBytes, growable });
  }

  addField(box: Box, field: Omit<OffsetField, 'location'>): void {
    const location = locationOf(box);
    this.#fieldTargetCount += field.targets.length;
    if (this.#fieldTargetCount > MAX_FIELD_TARGETS) throw tooMany(location, MAX_FIELD_TARGETS);
    this.fields.push({ location, ...field });
  }

  /** Adds the bytes of a box from `position`, counted from its start, to its end. */
  addTrailingBytes(box: Box, position: number): void {
    if (this.trailingBytes.length === MAX_TRAILING_BYTES_COUNT)
      throw tooMany(locationOf(box), MAX_TRAILING_BYTES_COUNT);
    const { header, ancestors, bytes } = box;
    this.trailingBytes.push({
      offset: header.offset + position,
      sizeBytes: bytes.length - position,
      ancestors: [header, ...ancestors],
    });
  }
}

function locationOf(box: Box): BoxLocation {
  return { fileName: box.fileName, type: box.type, offset: box.header.offset };
}

function tooMany({ fileName: name, type, offset }: BoxLocation, maxOffsets: number): AppError {
  return new AppError('BMFF_TOO_MANY_OFFSETS', { name, boxType: printableType(type), offset, maxOffsets });
}

/** Location of a box, for error messages. */
export interface BoxLocation {
  readonly fileName: string;
  readonly type: string;
  readonly offset: number;
}

/** Table of absolute file offsets in a box, one every `strideBytes`. */
export interface OffsetTable {
  readonly location: BoxLocation;
  /** Position of the first stored offset, counted from the start of the file. */
  readonly position: number;
  /** Copy of the table, from its first offset to the end of its last. */
  readonly bytes: Buffer;
  readonly widthBytes: 4 | 8;
  readonly strideBytes: number;
  /**
   * The box and its ancestors, where a table of 32-bit offsets can become one of 64 bits (`stco` to `co64`); else null.
   */
  readonly growable: { readonly box: BoxHeader; readonly ancestors: readonly BoxHeader[] } | null;
}

/** Single absolute file offset, or a base offset. */
export interface OffsetField {
  readonly location: BoxLocation;
  /** Position of the field, counted from the start of the file. */
  readonly position: number;
  readonly widthBytes: number;
  readonly value: number;
  /** File offsets that the field points to, directly or as their base. All of them must move by the same distance. */
  readonly targets: readonly number[];
}

/** Bytes at the end of a box that are not a box, although C2PA readers take them for one. */
export interface TrailingBytes {
  readonly offset: number;
  readonly sizeBytes: number;
  /** Headers of the boxes that contain them, innermost first. */
  readonly ancestors: readonly BoxHeader[];
}

/** All absolute offsets that a file stores, and the trailing bytes to wrap. */
export interface StoredOffsets {
  readonly tables: readonly OffsetTable[];
  readonly fields: readonly OffsetField[];
  readonly trailingBytes: readonly TrailingBytes[];
}
