import { AppError } from '#errors/app-error.ts';
import { type Box, shownType } from './box.ts';
import type { BoxFields } from './box-fields.ts';
import type { BoxPlace, LooseEnd, OffsetField, OffsetTable, StoredOffsets } from './stored-offsets.ts';

/** Bound of the tables of a file: each track has one or two. */
const MAX_TABLES = 200_000;
/** Bound of the single offsets of a file: each track has one in a fragment, and each extent of an item. */
const MAX_FIELDS = 1_000_000;

/** Bound of the boxes that end with what is no box: each track has one or two, if any. */
const MAX_LOOSE_ENDS = 50_000;

/** Gathers the absolute offsets that a file stores, and what else must change with them. Throws where there are more than can be held. */
export class OffsetCollector implements StoredOffsets {
  readonly tables: OffsetTable[] = [];
  readonly fields: OffsetField[] = [];
  readonly looseEnds: LooseEnd[] = [];
  #fieldTargetCount = 0;

  /** The table that starts at the next field of a box. It is copied, so that the box can be let go. */
  addTable(
    box: Box,
    fields: BoxFields,
    shape: { count: number; widthBytes: 4 | 8; strideBytes?: number; isGrowable?: boolean },
  ): void {
    const { count, widthBytes, strideBytes = widthBytes, isGrowable = false } = shape;
    if (count === 0) return;
    const place = placeOf(box);
    if (this.tables.length === MAX_TABLES) throw tooMany(place, MAX_TABLES);
    const position = fields.offset;
    const bytes = Buffer.from(fields.bytes((count - 1) * strideBytes + widthBytes));
    const growable = isGrowable ? { box: box.header, ancestors: box.ancestors } : null;
    this.tables.push({ place, position, bytes, widthBytes, strideBytes, growable });
  }

  addField(box: Box, field: Omit<OffsetField, 'place'>): void {
    const place = placeOf(box);
    this.#fieldTargetCount += field.targets.length;
    if (this.#fieldTargetCount > MAX_FIELDS) throw tooMany(place, MAX_FIELDS);
    this.fields.push({ place, ...field });
  }

  /** What stands in a box from `position` on, counted from its start. */
  addLooseEnd(box: Box, position: number): void {
    if (this.looseEnds.length === MAX_LOOSE_ENDS) throw tooMany(placeOf(box), MAX_LOOSE_ENDS);
    const { header, ancestors, bytes } = box;
    this.looseEnds.push({
      offset: header.offset + position,
      sizeBytes: bytes.length - position,
      around: [header, ...ancestors],
    });
  }
}

function placeOf(box: Box): BoxPlace {
  return { fileName: box.fileName, type: box.type, offset: box.header.offset };
}

function tooMany({ fileName: name, type, offset }: BoxPlace, maxOffsets: number): AppError {
  return new AppError('BMFF_TOO_MANY_OFFSETS', { name, boxType: shownType(type), offset, maxOffsets });
}
