import type { ReadWindow } from '#bytes/byte-source.ts';
import { partitionPoint } from '#bytes/partition-point.ts';
import { AppError } from '#errors/app-error.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  type Box,
  BoxFields,
  MAX_BOX_HEADER_SIZE_BYTES,
  parseBoxHeader,
  readWholeBox,
  type TopLevelBox,
} from './boxes.ts';
import { trackDefaultsIn, trackFragmentHeaderOf, trackRunOf } from './fragment-boxes.ts';

// A hash that leaves out a box binds nothing in it. Whether players find media there, the tables of samples tell.

/** Largest `mvex` box: it holds some 40 bytes for each track. */
const MAX_MVEX_SIZE_BYTES = 16 * 1024 * 1024;
/** Largest number of children of a `moov` box that is searched for `mvex`. */
const MAX_CHILDREN = 65_536;
/** Bytes behind the header of a sample entry up to the version of a description of sound (QuickTime File Format). */
const SOUND_FIELDS_SIZE_BYTES = 8;
/** Uncompressed sound by its sample entry: bytes of a sample; 0 where the entry states the bits. */
const PCM_WIDTHS = new Map(
  Object.entries({ 'raw ': 0, twos: 0, sowt: 0, NONE: 0, ulaw: 1, alaw: 1, in24: 3, in32: 4, fl32: 4, fl64: 8 }),
);
/** Widths in bits that `stz2` and `stsz` have for a size. */
const SAMPLE_SIZE_BITS = [4, 8, 16, 32];

/** Media of a file: bytes that its tables call samples. Offsets count from the start of the file. */
export interface MediaRange {
  readonly start: number;
  readonly end: number;
  /** True for information about samples, which may lie beside the tables. */
  readonly isAuxiliary?: boolean;
}

/** Yields the chunks of a track as far as its tables tell them; `handlerType` is the track's. */
export function chunksOf(trak: Box, handlerType: string): Generator<MediaRange> {
  return untilMalformed(chunksIn(trak, handlerType === 'soun'));
}

/** Yields the runs of samples of a movie fragment (ISO/IEC 14496-12 §8.8.7 and §8.8.8) as far as it tells them. */
export function runsOf(moof: Box, defaults: DefaultSizes): Generator<MediaRange> {
  return untilMalformed(runsIn(moof, defaults));
}

/** Ends where a table does before its fields: players find no more media by it. */
function* untilMalformed(ranges: Generator<MediaRange>): Generator<MediaRange> {
  try {
    yield* ranges;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  }
}

/** Stands for media that nobody can place: players take different ones of several tables. */
export const ANYWHERE: MediaRange = { start: 0, end: Number.MAX_SAFE_INTEGER };

/** Tables that a track has one of: with two of a row, some players take the first, and others the last. */
const TABLES = [['stsz', 'stz2'], ['stsc'], ['stco', 'co64']];

/** Yields the chunks of a track. Throws `BMFF_BOX_MALFORMED`, and as `Box.children` does. */
export function* chunksIn(trak: Box, isSound: boolean): Generator<MediaRange> {
  const [stbl, ...others] = trak.descendants('mdia', 'minf', 'stbl');
  if (stbl === undefined) return;
  const tables = [...stbl.children()];
  const isDoubled = TABLES.some((types) => tables.filter(({ type }) => types.includes(type)).length > 1);
  if (isDoubled || others.length > 0 || tables.some(claimsMore)) return yield ANYWHERE;
  yield* auxiliaryIn(stbl, 0, samplesPerChunk(stbl));
  const box = tables.find(({ type }) => type === 'stco' || type === 'co64');
  if (box === undefined) return;
  const offsets = new BoxFields(box);
  offsets.versionAndFlags();
  const sizes = sampleSizesOf(stbl, isSound);
  const counts = samplesPerChunk(stbl);
  const widthBytes = box.type === 'stco' ? 4 : 8;
  for (let remaining = entriesOf(box, offsets, widthBytes); remaining > 0; remaining -= 1) {
    const start = offsets.uint(widthBytes);
    yield { start, end: start + sizes(counts.next().value ?? 0) };
  }
}

/** Bytes of an entry of tables that begin with their count. */
const ENTRY_BYTES: ReadonlyMap<string, number> = new Map(Object.entries({ stsc: 12, stco: 4, co64: 8 }));

/** Tells whether a table claims more entries than it holds: players read on behind it. */
function claimsMore(table: Box): boolean {
  const { type, bytes } = table;
  const fields = new BoxFields(table);
  const isOfSizes = type === 'stsz' || type === 'stz2';
  if (!isOfSizes && ENTRY_BYTES.get(type) === undefined) return false;
  fields.versionAndFlags();
  const size = isOfSizes ? fields.uint(4) : 0;
  const sizeBytes = type === 'stz2' ? (size & 0xff) / 8 : size === 0 ? 4 : 0;
  return fields.uint(4) * (ENTRY_BYTES.get(type) ?? sizeBytes) > bytes.length - fields.position;
}

/** Reads a count of entries that follow, at most as many as the box has. */
function entriesOf(box: Box, fields: BoxFields, widthBytes: number): number {
  return Math.min(fields.uint(4), Math.floor((box.bytes.length - fields.position) / widthBytes));
}

/** Yields the number of samples of one chunk after the other (`stsc`, ISO/IEC 14496-12 §8.7.4). */
export function* samplesPerChunk(stbl: Box): Generator<number, undefined> {
  const stsc = stbl.descendant('stsc');
  if (stsc === undefined) return;
  const fields = new BoxFields(stsc);
  fields.versionAndFlags();
  let remaining = entriesOf(stsc, fields, 12);
  if (remaining > 0) fields.skip(4); // first_chunk, which is 1
  for (let chunk = 1; remaining > 0; remaining -= 1) {
    const samples = fields.uint(4);
    fields.skip(4); // sample_description_index
    const nextRun = remaining > 1 ? fields.uint(4) : Number.POSITIVE_INFINITY;
    for (; chunk < nextRun; chunk += 1) yield samples;
  }
}

/** Returns a function for the size of that many further samples together (`stsz`, `stz2`; ISO/IEC 14496-12 §8.7.3). */
function sampleSizesOf(stbl: Box, isSound: boolean): (count: number) => number {
  const box = stbl.descendant('stsz') ?? stbl.descendant('stz2');
  if (box === undefined) return () => 0;
  const fields = new BoxFields(box);
  fields.versionAndFlags();
  const first = fields.uint(4);
  const bits = box.type === 'stsz' ? 32 : first & 0xff;
  const isUniform = box.type === 'stsz' && first > 0;
  if (!SAMPLE_SIZE_BITS.includes(bits)) return () => 0;
  let left = isUniform ? fields.uint(4) : entriesOf(box, fields, bits / 8);
  const take = (count: number): number => {
    const taken = Math.min(count, left);
    left -= taken;
    return taken;
  };
  if (isUniform) {
    const sizeBytes = (isSound ? soundFrameSizeBytes(stbl) : null) ?? first;
    return (count) => take(count) * sizeBytes;
  }
  let half: number | null = null;
  const next = (): number => {
    if (bits !== 4) return fields.uint(bits / 8);
    const pair = half ?? fields.uint(1);
    const isFirst = half === null;
    half = isFirst ? pair : null;
    return isFirst ? pair >> 4 : pair & 15;
  };
  return (count) => {
    let sizeBytes = 0;
    for (let samples = take(count); samples > 0; samples -= 1) sizeBytes += next();
    return sizeBytes;
  };
}

/**
 * Returns the bytes of a frame of sound, which players take from its description where all samples have one size (QuickTime
 * File Format, sound sample descriptions); null where it tells none.
 */
function soundFrameSizeBytes(stbl: Box): number | null {
  const [entry] = stbl.descendant('stsd')?.children(8) ?? [];
  if (entry === undefined || entry.bytes.length < 36) return null;
  const fields = new BoxFields(entry);
  fields.skip(SOUND_FIELDS_SIZE_BYTES);
  const version = fields.uint(2);
  const numbersAt = version === 1 ? 36 : version === 2 ? 64 : null;
  if (numbersAt !== null && entry.bytes.length >= numbersAt + 12) {
    const frames = entry.bytes.readUInt32BE(version === 1 ? numbersAt : numbersAt + 4);
    const sizeBytes = entry.bytes.readUInt32BE(version === 1 ? numbersAt + 8 : numbersAt);
    if (sizeBytes > 0 && frames > 0) return sizeBytes / frames;
  }
  const width = PCM_WIDTHS.get(entry.type);
  if (width === undefined) return null;
  fields.skip(6); // revision and vendor
  const channels = fields.uint(2);
  const bits = fields.uint(2);
  return channels * (width === 0 ? Math.ceil(bits / 8) : width);
}

/** Sizes of samples by track id, where a fragment states none (`trex`). */
export type DefaultSizes = ReadonlyMap<number, number>;

/** Reads the default sizes of a `moov` box: only its children's headers and `mvex`. Throws `BMFF_BOX_TOO_LARGE`. */
export async function readDefaultSizes(
  name: string,
  window: ReadWindow,
  moov: TopLevelBox | undefined,
): Promise<DefaultSizes> {
  const end = moov === undefined ? 0 : moov.offset + moov.sizeBytes;
  let offset = moov === undefined ? 0 : moov.offset + moov.headerSizeBytes;
  for (let count = 0; count < MAX_CHILDREN && offset + BOX_HEADER_SIZE_BYTES <= end; count += 1) {
    const head = await window.read(offset, Math.min(MAX_BOX_HEADER_SIZE_BYTES, end - offset));
    const header = parseBoxHeader(head, offset, end);
    if (header.sizeBytes < header.headerSizeBytes || offset + header.sizeBytes > end) break;
    if (header.type === 'mvex') return defaultSizesIn([await readWholeBox(name, window, header, MAX_MVEX_SIZE_BYTES)]);
    offset += header.sizeBytes;
  }
  return new Map();
}

/** Returns the default sizes of a `moov` box in memory. Throws `BMFF_BOX_MALFORMED`, and as `Box.children` does. */
export function defaultSizesOf(moov: Box): DefaultSizes {
  return defaultSizesIn(moov.descendants('mvex'));
}

function defaultSizesIn(boxes: Iterable<Box>): DefaultSizes {
  const defaults = new Map<number, number>();
  for (const { trackId, sampleSizeBytes } of trackDefaultsIn(boxes)) {
    // Of two, some players take the first, and others the last.
    defaults.set(trackId, defaults.has(trackId) ? ANYWHERE.end : sampleSizeBytes);
  }
  return defaults;
}

/** Yields the runs of samples of a movie fragment. Throws `BMFF_BOX_MALFORMED`, and as `Box.children` does. */
export function* runsIn(moof: Box, defaults: DefaultSizes): Generator<MediaRange> {
  let end = moof.header.offset;
  for (const traf of moof.descendants('traf')) {
    const [tfhd, ...others] = traf.descendants('tfhd');
    if (others.length > 0) return yield ANYWHERE;
    if (tfhd === undefined) continue;
    const { trackId, baseOffset, isBasedOnMoof, sampleSizeBytes } = trackFragmentHeaderOf(tfhd);
    const base = baseOffset ?? (isBasedOnMoof ? moof.header.offset : end);
    const sizeBytes = sampleSizeBytes ?? defaults.get(trackId) ?? 0;
    yield* auxiliaryIn(traf, base, samplesPerRun(traf));
    end = base;
    for (const trun of traf.descendants('trun')) {
      const run = runAt(trun, base, end, sizeBytes);
      yield run;
      end = run.end;
    }
  }
}

function runAt(trun: Box, base: number, previousEnd: number, defaultSizeBytes: number): MediaRange {
  const { sampleCount, dataOffset, sizeAt, strideBytes, isCutShort } = trackRunOf(trun);
  const start = dataOffset === null ? previousEnd : base + dataOffset;
  if (sizeAt === null) return { start, end: start + sampleCount * defaultSizeBytes };
  // Players read on behind the box.
  if (isCutShort) return ANYWHERE;
  let end = start;
  for (let sample = 0, at = sizeAt; sample < sampleCount; sample += 1, at += strideBytes) {
    end += trun.bytes.readUInt32BE(at);
  }
  return { start, end };
}

function* samplesPerRun(traf: Box): Generator<number, undefined> {
  for (const trun of traf.descendants('trun')) yield trackRunOf(trun).sampleCount;
}

/** Largest number of tables of auxiliary information: samples have one kind of it, which says how they are encrypted. */
const MAX_AUXILIARY_TABLES = 4;

/**
 * Yields the ranges of auxiliary information of samples (`saiz` and `saio`, ISO/IEC 14496-12 §8.7.8 and §8.7.9), by which players
 * decrypt them. `counts` are the samples of each offset, where there are several.
 */
function* auxiliaryIn(parent: Box, base: number, counts: Iterator<number>): Generator<MediaRange> {
  const sizeTables = [...parent.descendants('saiz')];
  const offsetTables = [...parent.descendants('saio')];
  if (Math.max(sizeTables.length, offsetTables.length) > MAX_AUXILIARY_TABLES) return yield ANYWHERE;
  try {
    const sizes = sizeTables.map(auxiliarySizesOf);
    for (const saio of offsetTables) {
      const { version, fields } = auxiliaryFields(saio);
      const count = fields.uint(4);
      for (let entry = 0, sample = 0; entry < count; entry += 1) {
        const start = base + fields.uint(version === 0 ? 4 : 8);
        const next = count === 1 ? Number.MAX_SAFE_INTEGER : sample + (counts.next().value ?? 0);
        const end = start + Math.max(1, ...sizes.map((sizeOf) => sizeOf(sample, next)));
        yield { start, end, isAuxiliary: true };
        sample = next;
      }
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    // Players read on behind tables that claim more than they hold.
    yield ANYWHERE;
  }
}

/** Reads the beginning that `saiz` and `saio` share. */
export function auxiliaryFields(box: Box): { readonly version: number; readonly fields: BoxFields } {
  const fields = new BoxFields(box);
  const { version, flags } = fields.versionAndFlags();
  if ((flags & 1) !== 0) fields.skip(8); // aux_info_type and its parameter
  return { version, fields };
}

/** Returns a function for the size of the information of samples from one to before another. */
function auxiliarySizesOf(saiz: Box): (first: number, next: number) => number {
  const { fields } = auxiliaryFields(saiz);
  const sizeBytes = fields.uint(1);
  const count = fields.uint(4);
  if (sizeBytes > 0) return (first, next) => Math.max(0, Math.min(next, count) - first) * sizeBytes;
  const sizes = fields.bytes(count);
  return (first, next) => sizes.subarray(first, next).reduce((sum, size) => sum + size, 0);
}

/** Finds the top-level boxes that hold media beside `mdat`. */
export class MediaBoxes {
  readonly #boxes: readonly TopLevelBox[];
  /** For each box, the ranges that begin in it less those that ended before it. */
  readonly #steps: Int32Array;

  constructor(boxes: readonly TopLevelBox[]) {
    this.#boxes = boxes;
    this.#steps = new Int32Array(boxes.length + 1);
  }

  add({ start, end }: MediaRange): void {
    const last = this.#boxes.at(-1);
    if (end <= start || last === undefined || start >= last.offset + last.sizeBytes) return;
    this.#step(Math.max(this.#indexAt(start), 0), 1);
    this.#step(this.#indexAt(end - 1) + 1, -1);
  }

  /** Returns the boxes other than `mdat` that hold any of the ranges. */
  others(): TopLevelBox[] {
    let count = 0;
    return this.#boxes.filter(({ type }, index) => {
      count += this.#steps[index] as number;
      return count > 0 && type !== 'mdat';
    });
  }

  #step(index: number, by: number): void {
    this.#steps[index] = (this.#steps[index] as number) + by;
  }

  /** Returns the index of the last box that begins at or before an offset; -1 for none. */
  #indexAt(offset: number): number {
    return partitionPoint(this.#boxes, (box) => box.offset > offset) - 1;
  }
}
