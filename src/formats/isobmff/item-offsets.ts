import { AppError } from '#errors/app-error.ts';
import type { Box } from './box.ts';
import { BoxFields } from './box-fields.ts';
import { externalReferencesIn } from './chunk-offsets.ts';
import { type OffsetField, placeOf } from './stored-offsets.ts';

/** Item data at offsets of the file, not in the `meta` box and not in other items (ISO/IEC 14496-12 §8.11.3). */
const IN_FILE = 0;
const VERSION_AND_FLAGS_SIZE_BYTES = 4;
/** Bound of the extents of all items of one box: where they take no space, a few bytes could ask for endless ones. */
const MAX_EXTENTS = 100_000;
/** Widths that the numbers may have, in bytes. */
const NUMBER_WIDTHS = [0, 4, 8];

/** A number as it is stored. */
interface StoredNumber {
  readonly position: number;
  readonly widthBytes: number;
  readonly value: number;
}

/** The absolute offsets of the items of a `meta` box, in its item location box (`iloc`). */
export function itemOffsets(meta: Box): OffsetField[] {
  const children = [...meta.children(isFullBox(meta) ? VERSION_AND_FLAGS_SIZE_BYTES : 0)];
  const isExternal = externalReferencesIn(children.find(({ type }) => type === 'dinf'));
  return children.filter(({ type }) => type === 'iloc').flatMap((iloc) => locationOffsets(iloc, isExternal));
}

/** In QuickTime a `meta` box has no version and flags: its first child, the handler, follows at once. */
function isFullBox(meta: Box): boolean {
  const firstTypeAt = meta.header.headerSizeBytes + 4;
  return meta.bytes.toString('latin1', firstTypeAt, firstTypeAt + 4) !== 'hdlr';
}

function locationOffsets(iloc: Box, isExternal: readonly boolean[]): OffsetField[] {
  const fields = new BoxFields(iloc);
  const { version } = fields.versionAndFlags();
  const widths = fields.uint(2);
  const [offsetWidth = 0, lengthWidth = 0, baseWidth = 0, indexWidth = 0] = [12, 8, 4, 0].map(
    (bits) => (widths >> bits) & 15,
  );
  if (!NUMBER_WIDTHS.includes(offsetWidth) || !NUMBER_WIDTHS.includes(baseWidth)) {
    throw malformed(iloc, 'its numbers are neither 4 nor 8 bytes wide');
  }
  const countWidth = version < 2 ? 2 : 4;
  const offsets: OffsetField[] = [];
  let totalExtents = 0;
  for (let remaining = fields.uint(countWidth); remaining > 0; remaining -= 1) {
    fields.skip(countWidth); // the item's id
    const method = version === 0 ? IN_FILE : fields.uint(2) & 15;
    const isElsewhere = isExternal[fields.uint(2) - 1] ?? false;
    const base = storedNumber(fields, baseWidth);
    const extents: StoredNumber[] = [];
    const extentCount = fields.uint(2);
    totalExtents += extentCount;
    if (totalExtents > MAX_EXTENTS) throw malformed(iloc, `it has more than ${MAX_EXTENTS} extents`);
    for (let index = 0; index < extentCount; index += 1) {
      if (version > 0) fields.skip(indexWidth);
      extents.push(storedNumber(fields, offsetWidth));
      fields.skip(lengthWidth);
    }
    if (method === IN_FILE && !isElsewhere) offsets.push(...movingNumbers(iloc, base, extents));
  }
  return offsets;
}

function malformed(iloc: Box, problem: string): AppError {
  const { fileName: name, header } = iloc;
  return new AppError('BMFF_BOX_MALFORMED', { name, boxType: header.type, offset: header.offset, problem });
}

function storedNumber(fields: BoxFields, widthBytes: number): StoredNumber {
  return { position: fields.offset, widthBytes, value: fields.uint(widthBytes) };
}

/** An extent is at base + offset. Where the base is in use it alone moves, else each offset does. */
function movingNumbers(iloc: Box, base: StoredNumber, extents: readonly StoredNumber[]): OffsetField[] {
  const place = placeOf(iloc);
  const usesBase = base.widthBytes > 0 && (base.value > 0 || extents.every(({ widthBytes }) => widthBytes === 0));
  if (usesBase) {
    const targets = extents.map(({ value }) => base.value + value);
    return targets.length === 0 ? [] : [{ place, ...base, targets }];
  }
  return extents
    .filter(({ widthBytes }) => widthBytes > 0)
    .map((extent) => ({ place, ...extent, targets: [base.value + extent.value] }));
}
