import { AppError } from '#errors/app-error.ts';
import { Box, BoxFields, type BoxHeader, boxHeadersIn, printableType, requireFit } from './boxes.ts';
import { trackRunOf } from './fragment-boxes.ts';
import { auxiliaryFields, type MediaRange } from './media-boxes.ts';

/** Boxes whose children C2PA readers parse, whether or not a player does. */
const CONTAINER_TYPES = new Set(
  'moov trak mdia minf stbl edts udta dinf tref mvex meta schi moof traf mfra'.split(' '),
);

/** Largest depth that is examined; the nesting of valid files has six levels. */
const MAX_DEPTH = 16;
/** Largest number of children of one box that is examined. */
const MAX_CHILDREN = 65_536;
/** Possible positions of the first child of a `meta` box behind its header: QuickTime omits version and flags. */
const META_CHILD_POSITIONS = [0, 4] as const;
/** Flag of a data reference: the media is in this file (ISO/IEC 14496-12 §8.7.2). */
const SELF_CONTAINED = 1;
/** Reserved bytes of a sample entry before its data reference index (ISO/IEC 14496-12 §8.5.2.2). */
const RESERVED_SIZE_BYTES = 6;
/** Flag of `tfhd` (ISO/IEC 14496-12 §8.8.7). */
const HAS_BASE_DATA_OFFSET = 0x000001;
/** Construction method of an item whose data is at file offsets (ISO/IEC 14496-12 §8.11.3). */
const IN_FILE = 0;
const VERSION_AND_FLAGS_SIZE_BYTES = 4;
/** Widths in bytes that `iloc` allows for its numbers. */
const NUMBER_WIDTHS = [0, 4, 8];

/** Stored number with its position in the file. */
interface StoredNumber {
  readonly position: number;
  readonly widthBytes: number;
  readonly value: number;
}

/** Offset of a part of an item, with the part's length. */
interface Extent extends StoredNumber {
  readonly lengthBytes: number;
}

/**
 * Adds the absolute offsets of a track's sample table: chunk offsets (`stco`, `co64`; ISO/IEC 14496-12 §8.7.5) and
 * offsets of auxiliary information (`saio`, §8.7.9). Returns false, and adds none, for a track whose media is in other
 * files. Throws `BMFF_DATA_REFERENCES_MIXED` where only a part of it is, `BMFF_BOX_MALFORMED` and
 * `BMFF_TOO_MANY_OFFSETS`.
 */
export function addTrackOffsets(trak: Box, offsets: OffsetCollector): boolean {
  const minf = trak.descendant('mdia', 'minf');
  if (minf === undefined) return true;
  if (isExternal(minf)) return false;
  for (const box of minf.descendants('stbl', 'stco'))
    addChunkOffsets(box, offsets, { widthBytes: 4, isGrowable: true });
  for (const box of minf.descendants('stbl', 'co64')) addChunkOffsets(box, offsets, { widthBytes: 8 });
  for (const box of minf.descendants('stbl', 'saio')) addAuxiliaryOffsets(box, offsets);
  return true;
}

function addChunkOffsets(box: Box, offsets: OffsetCollector, shape: { widthBytes: 4 | 8; isGrowable?: boolean }): void {
  const fields = new BoxFields(box);
  fields.versionAndFlags();
  offsets.addTable(box, fields, { count: fields.uint(4), ...shape });
}

/**
 * Adds the offsets of `saio` in a sample table, which are absolute. In a track fragment they count from
 * its base offset.
 */
function addAuxiliaryOffsets(box: Box, offsets: OffsetCollector): void {
  const { version, fields } = auxiliaryFields(box);
  offsets.addTable(box, fields, { count: fields.uint(4), widthBytes: version === 0 ? 4 : 8 });
}

/**
 * Returns a `moov` box that stands `shift` bytes further on, with the offsets of auxiliary information in it; null where it has none.
 * Throws `BMFF_BOX_MALFORMED`.
 */
export function movedAuxiliary(moov: Box, shift: number): Buffer | null {
  const offsets = new OffsetCollector();
  for (const saio of moov.descendants('trak', 'mdia', 'minf', 'stbl', 'saio')) addAuxiliaryOffsets(saio, offsets);
  if (offsets.tables.length === 0) return null;
  const moved = Buffer.from(moov.bytes);
  for (const { position, bytes, widthBytes } of offsets.tables) {
    for (let at = 0; at < bytes.length; at += widthBytes) {
      const to = position - moov.header.offset + at;
      if (widthBytes === 4) moved.writeUInt32BE(moved.readUInt32BE(to) + shift, to);
      else moved.writeBigUInt64BE(moved.readBigUInt64BE(to) + BigInt(shift), to);
    }
  }
  return moved;
}

/** Tells whether a track's media is in other files. */
function isExternal(minf: Box): boolean {
  const dref = minf.descendant('dinf', 'dref');
  const stsd = minf.descendant('stbl', 'stsd');
  if (dref === undefined || stsd === undefined) return false;
  const isReferenceExternal = externalReferences(dref);
  if (!isReferenceExternal.includes(true)) return false;
  const isEntryExternal = [...stsd.children(8)].map((entry) => {
    const fields = new BoxFields(entry);
    fields.skip(RESERVED_SIZE_BYTES);
    return isReferenceExternal[fields.uint(2) - 1] ?? false;
  });
  if (!isEntryExternal.includes(true)) return false;
  if (isEntryExternal.includes(false)) {
    throw new AppError('BMFF_DATA_REFERENCES_MIXED', { name: minf.fileName, offset: dref.header.offset });
  }
  return true;
}

/**
 * Tells for each data reference whether it leads to another file. A reference without a location does not, whatever its
 * flag: players read this file then.
 */
function externalReferences(dref: Box): boolean[] {
  return [...dref.children(8)].map((reference) => {
    const fields = new BoxFields(reference);
    const { flags } = fields.versionAndFlags();
    return (flags & SELF_CONTAINED) === 0 && reference.bytes.subarray(fields.position).some((byte) => byte !== 0);
  });
}

/** Tells whether a track refers to its media by an address (`url `): players read this file all the same. */
export function hasAddress(trak: Box): boolean {
  const [dref] = trak.descendants('mdia', 'minf', 'dinf', 'dref');
  return dref !== undefined && [...dref.children(8)].some(({ type }) => type === 'url ');
}

/** Returns `externalReferences` of a `dinf` box; the indexes that boxes store count from 1. */
function externalReferencesIn(dinf: Box | undefined): readonly boolean[] {
  const dref = dinf?.descendant('dref');
  return dref === undefined ? [] : externalReferences(dref);
}

/**
 * Adds the absolute offsets of a movie fragment: the base data offsets in `tfhd` (ISO/IEC 14496-12 §8.8.7). All other
 * offsets in a fragment are relative to these or to the `moof` box. Throws `BMFF_BOX_MALFORMED` and
 * `BMFF_TOO_MANY_OFFSETS`.
 */
export function addFragmentOffsets(moof: Box, offsets: OffsetCollector): void {
  for (const traf of moof.descendants('traf')) {
    const tfhd = traf.descendant('tfhd');
    if (tfhd === undefined) continue;
    const fields = new BoxFields(tfhd);
    const { flags } = fields.versionAndFlags();
    if ((flags & HAS_BASE_DATA_OFFSET) === 0) continue;
    fields.skip(4); // track_ID
    const position = fields.offset;
    const value = fields.uint(8);
    // A base may have any value, even 0: `trun` adds the distance of its samples to it.
    const trun = traf.descendant('trun');
    const start = value + (trun === undefined ? 0 : (trackRunOf(trun).dataOffset ?? 0));
    const targets = [{ start, end: start + 1 }];
    offsets.addField(tfhd, { position, widthBytes: 8, value, targets });
  }
}

/**
 * Adds the offsets of movie fragments in `mfra` (ISO/IEC 14496-12 §8.8.9 to §8.8.11). Throws `BMFF_BOX_MALFORMED` and
 * `BMFF_TOO_MANY_OFFSETS`.
 */
export function addRandomAccessOffsets(mfra: Box, offsets: OffsetCollector): void {
  for (const tfra of mfra.descendants('tfra')) {
    const fields = new BoxFields(tfra);
    const { version } = fields.versionAndFlags();
    fields.skip(4); // track_ID
    const lengths = fields.uint(4);
    const count = fields.uint(4);
    const widthBytes = version === 1 ? 8 : 4;
    const numbersSizeBytes = [lengths >> 4, lengths >> 2, lengths].reduce((sum, bits) => sum + (bits & 3) + 1, 0);
    if (count > 0) fields.skip(widthBytes); // time of the first entry; its moof_offset follows
    offsets.addTable(tfra, fields, { count, widthBytes, strideBytes: 2 * widthBytes + numbersSizeBytes });
  }
}

/**
 * Adds the absolute offsets of items (`iloc`, ISO/IEC 14496-12 §8.11.3). Throws `BMFF_BOX_MALFORMED` and
 * `BMFF_TOO_MANY_OFFSETS`.
 */
export function addItemOffsets(meta: Box, offsets: OffsetCollector): void {
  const children = [...meta.children(isFullBox(meta) ? VERSION_AND_FLAGS_SIZE_BYTES : 0)];
  const isExternal = externalReferencesIn(children.find(({ type }) => type === 'dinf'));
  for (const iloc of children.filter(({ type }) => type === 'iloc')) addLocationOffsets(iloc, isExternal, offsets);
}

/**
 * Tells whether a `meta` box has version and flags. In QuickTime it has none: its first child, `hdlr`,
 * follows the header.
 */
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
    fields.skip(countWidth); // item_ID
    const method = version === 0 ? IN_FILE : fields.uint(2) & 15;
    const isElsewhere = isExternal[fields.uint(2) - 1] ?? false;
    const base = storedNumber(fields, baseWidth);
    const extents = extentOffsets(fields, version === 0 ? 0 : indexWidth, offsetWidth, lengthWidth);
    if (method === IN_FILE && !isElsewhere) addItemNumbers(iloc, base, extents, offsets);
  }
}

/** Reads the stored offsets of an item's extents. Returns none where their width is 0, which means that all are 0. */
function extentOffsets(fields: BoxFields, indexWidth: number, offsetWidth: number, lengthWidth: number): Extent[] {
  const count = fields.uint(2);
  const extents: Extent[] = [];
  if (offsetWidth === 0) fields.skip(count * (indexWidth + lengthWidth));
  for (let index = 0; index < count && offsetWidth > 0; index += 1) {
    fields.skip(indexWidth);
    extents.push({ ...storedNumber(fields, offsetWidth), lengthBytes: fields.uint(lengthWidth) });
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

/** Adds the numbers of an item that move: its base offset where that is in use, else the offset of every extent. */
function addItemNumbers(iloc: Box, base: StoredNumber, extents: readonly Extent[], offsets: OffsetCollector): void {
  const rangeOf = ({ value, lengthBytes }: Pick<Extent, 'value' | 'lengthBytes'>): MediaRange => {
    const start = base.value + value;
    return { start, end: start + Math.max(1, lengthBytes) };
  };
  const targets = extents.length === 0 ? [rangeOf({ value: 0, lengthBytes: 1 })] : extents.map(rangeOf);
  if (base.widthBytes > 0 && (base.value > 0 || extents.length === 0)) {
    offsets.addField(iloc, { ...base, targets });
    return;
  }
  for (const extent of extents) offsets.addField(iloc, { ...extent, targets: [rangeOf(extent)] });
}

/** Version and number of entries at the start of a `gps ` box, and offset and size of one entry: 4 bytes each. */
const GPS_HEAD_SIZE_BYTES = 8;
const GPS_ENTRY_SIZE_BYTES = 8;

/**
 * Adds the offsets of a `gps ` box in `moov`, by which programs find the positions that a dashcam recorded: those with chips
 * of Novatek put them into `free` boxes between the media, and list these. No specification describes the box, so one that is
 * not exactly such a list, or leads out of the file, is left alone.
 */
export function addGpsOffsets(gps: Box, fileSizeBytes: number, offsets: OffsetCollector): void {
  const { bytes, header } = gps;
  const start = header.headerSizeBytes + GPS_HEAD_SIZE_BYTES;
  if (bytes.length < start) return;
  const fields = new BoxFields(gps);
  fields.skip(4); // version
  const count = fields.uint(4);
  if (bytes.length !== start + count * GPS_ENTRY_SIZE_BYTES) return;
  for (let at = start; at < bytes.length; at += GPS_ENTRY_SIZE_BYTES) {
    if (bytes.readUInt32BE(at) + bytes.readUInt32BE(at + 4) > fileSizeBytes) return;
  }
  offsets.addTable(gps, fields, { count, widthBytes: 4, strideBytes: GPS_ENTRY_SIZE_BYTES });
}

/**
 * Checks the nesting of a box, and adds to `offsets` the trailing bytes that have to be wrapped in a `free` box: fewer
 * bytes than a box header, the size of 0 that ends a QuickTime list, or an impossible size. Players stop reading there;
 * C2PA readers take the bytes for a box and then find no manifest in the whole file (seen with tags in
 * `moov/udta/meta`). Throws `BMFF_BOX_EXCEEDS_PARENT` for a box that ends behind its parent, and
 * `BMFF_TOO_MANY_OFFSETS`.
 */
export function checkNesting(box: Box, offsets: OffsetCollector, depth = 0): void {
  const first = firstChildPosition(box);
  if (first === null || depth > MAX_DEPTH) return;
  let position = box.header.headerSizeBytes + first;
  let count = 0;
  for (const header of boxHeadersIn(box.bytes, position, box.header.offset)) {
    if (header.sizeForm === 'to-end' || header.sizeBytes < header.headerSizeBytes) break;
    if (count === MAX_CHILDREN) return;
    requireFit(header, box);
    const bytes = box.bytes.subarray(position, position + header.sizeBytes);
    if (CONTAINER_TYPES.has(header.type)) checkNesting(new Box(box.fileName, header, bytes, box), offsets, depth + 1);
    position += header.sizeBytes;
    count += 1;
  }
  if (position < box.bytes.length) offsets.addTrailingBytes(box, position);
}

/** Returns null for a `meta` box that does not start with `hdlr` (ISO/IEC 14496-12 §8.11.1): its form is ambiguous. */
function firstChildPosition({ type, header, bytes }: Box): number | null {
  if (type !== 'meta') return 0;
  return (
    META_CHILD_POSITIONS.find((position) => {
      const typeAt = header.headerSizeBytes + position + 4;
      return bytes.toString('latin1', typeAt, typeAt + 4) === 'hdlr';
    }) ?? null
  );
}

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
   * Adds a copy of the table at the next field of a box. Throws `BMFF_BOX_MALFORMED` where the box ends
   * before the table.
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
  /** Ranges that the field points to, directly or as their base. All of them must move by the same distance. */
  readonly targets: readonly MediaRange[];
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
