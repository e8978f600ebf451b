import { AppError } from '#errors/app-error.ts';
import type { Box } from './box.ts';
import { BoxFields } from './box-fields.ts';
import { externalReferencesIn } from './chunk-offsets.ts';
import type { OffsetCollector } from './offset-collector.ts';

/** Item data at offsets of the file, not in the `meta` box and not in other items (ISO/IEC 14496-12 §8.11.3). */
const IN_FILE = 0;
const VERSION_AND_FLAGS_SIZE_BYTES = 4;
/** Widths that the numbers may have, in bytes. */
const NUMBER_WIDTHS = [0, 4, 8];

/** A number as it is stored. */
interface StoredNumber {
  readonly position: number;
  readonly widthBytes: number;
  readonly value: number;
}

/** Adds the absolute offsets of the items of a `meta` box, in its item location box (`iloc`). */
export function addItemOffsets(meta: Box, offsets: OffsetCollector): void {
  const children = [...meta.children(isFullBox(meta) ? VERSION_AND_FLAGS_SIZE_BYTES : 0)];
  const isExternal = externalReferencesIn(children.find(({ type }) => type === 'dinf'));
  for (const iloc of children.filter(({ type }) => type === 'iloc')) addLocationOffsets(iloc, isExternal, offsets);
}

/** In QuickTime a `meta` box has no version and flags: its first child, the handler, follows at once. */
function isFullBox(meta: Box): boolean {
  const firstTypeAt = meta.header.headerSizeBytes + 4;
  return meta.bytes.toString('latin1', firstTypeAt, firstTypeAt + 4) !== 'hdlr';
}

function addLocationOffsets(iloc: Box, isExternal: readonly boolean[], offsets: OffsetCollector): void {
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
  for (let remaining = fields.uint(countWidth); remaining > 0; remaining -= 1) {
    fields.skip(countWidth); // the item's id
    const method = version === 0 ? IN_FILE : fields.uint(2) & 15;
    const isElsewhere = isExternal[fields.uint(2) - 1] ?? false;
    const base = storedNumber(fields, baseWidth);
    const extents = extentOffsets(fields, version === 0 ? 0 : indexWidth, offsetWidth, lengthWidth);
    if (method === IN_FILE && !isElsewhere) addMovingNumbers(iloc, base, extents, offsets);
  }
}

/** Where the offsets of an item's extents are stored: none where these have no width, and so all are 0. */
function extentOffsets(
  fields: BoxFields,
  indexWidth: number,
  offsetWidth: number,
  lengthWidth: number,
): StoredNumber[] {
  const count = fields.uint(2);
  const extents: StoredNumber[] = [];
  if (offsetWidth === 0) fields.skip(count * (indexWidth + lengthWidth));
  for (let index = 0; index < count && offsetWidth > 0; index += 1) {
    fields.skip(indexWidth);
    extents.push(storedNumber(fields, offsetWidth));
    fields.skip(lengthWidth);
  }
  return extents;
}

function malformed(iloc: Box, problem: string): AppError {
  const { fileName: name, header } = iloc;
  return new AppError('BMFF_BOX_MALFORMED', { name, boxType: header.type, offset: header.offset, problem });
}

function storedNumber(fields: BoxFields, widthBytes: number): StoredNumber {
  return { position: fields.offset, widthBytes, value: fields.uint(widthBytes) };
}

/** An extent is at base + offset. Where the base is in use it alone moves, else each offset does. */
function addMovingNumbers(
  iloc: Box,
  base: StoredNumber,
  extents: readonly StoredNumber[],
  offsets: OffsetCollector,
): void {
  const targets = extents.length === 0 ? [base.value] : extents.map(({ value }) => base.value + value);
  if (base.widthBytes > 0 && (base.value > 0 || extents.length === 0)) {
    offsets.addField(iloc, { ...base, targets });
    return;
  }
  for (const extent of extents) offsets.addField(iloc, { ...extent, targets: [base.value + extent.value] });
}
