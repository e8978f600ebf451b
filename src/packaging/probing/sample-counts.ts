import { shownType } from '#formats/isobmff/box.ts';
import { BrokenMedia } from './broken-media.ts';

/** Samples that a file may claim without a byte for each of them, whatever its size. */
const MIN_CLAIMED_SAMPLES = 100_000;
/** Samples of tracks that are shown in another order than they lie in: three days of video at 30 frames a second. */
const MAX_REORDERED_SAMPLES = 8_000_000;
/** Samples of one fragment: 40 seconds of uncompressed sound, each of whose samples is one here. */
const MAX_FRAGMENT_SAMPLES = 2_000_000;
/** Entries of one table of fragments that have the time of another one. */
const MAX_SAME_TIMES = 10_000;
/** Boxes that hold others are gone into so deep; the deepest that matters lies six deep. */
const MAX_DEPTH = 16;

const ENTERED = new Set('moov trak mdia minf stbl edts mvex moof traf mfra'.split(' '));

/** Bytes of one entry in the tables that say how many they have, and where behind the box header that stands. */
const TABLES: Readonly<Record<string, { readonly entryBytes: number; readonly countAt: number }>> = {
  stts: { entryBytes: 8, countAt: 4 },
  ctts: { entryBytes: 8, countAt: 4 },
  stsc: { entryBytes: 12, countAt: 4 },
  stco: { entryBytes: 4, countAt: 4 },
  co64: { entryBytes: 8, countAt: 4 },
  stss: { entryBytes: 4, countAt: 4 },
  elst: { entryBytes: 12, countAt: 4 },
};

/** Flags of a run of samples that put a field of four bytes into it for each sample (ISO/IEC 14496-12 §8.8.8). */
const PER_SAMPLE_FLAGS = [0x100, 0x200, 0x400, 0x800];

/** A box in memory; `[start, end)` is its content, as far as it lies in what holds it. */
interface PlacedBox {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Refuses counts that a file of its size cannot mean, before a demuxer makes an object of each sample: nine kilobytes may
 * claim four billion of them. Tables are held against their bytes; counts that no bytes stand for (of runs that give all
 * samples the same size and duration, and of tables that repeat a value) against the size of the file.
 */
export class SampleCounts {
  readonly #sizeBytes: number;
  #claimed = 0;

  /** `sizeBytes` is the size of the file. */
  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
  }

  /** Checks boxes of a movie (`moov`, `moof`, `mfra`) with everything in them. They stand at `offset`. Throws BrokenMedia. */
  check(bytes: Buffer, offset: number): void {
    let inFragment = 0;
    for (const box of boxesIn(bytes, 0, bytes.length)) {
      if (box.type === 'stbl') this.#checkSampleTable(bytes, box, offset);
      if (box.type === 'trun') inFragment += this.#checkRun(bytes, box, offset);
      if (box.type === 'tfra') refuseSameTimes(bytes, box, offset);
      if (box.type === 'stz2') this.#checkCompactSizes(bytes, box, offset);
      checkTable(bytes, box, offset);
    }
    if (inFragment > MAX_FRAGMENT_SAMPLES) {
      throw new BrokenMedia(`claims ${inFragment} samples in one fragment, more than ${MAX_FRAGMENT_SAMPLES}`);
    }
  }

  /** Samples are put in order one by one where their times of decoding and showing differ (`ctts`). */
  #checkSampleTable(bytes: Buffer, { start, end }: PlacedBox, offset: number): void {
    const tables = [...childrenIn(bytes, start, end)];
    const offsets = tables.filter(({ type }) => type === 'ctts');
    this.#checkChunks(bytes, tables, offset);
    if (offsets.length === 0) return;
    for (const table of [...offsets, ...tables.filter(({ type }) => type === 'stts')]) {
      checkTable(bytes, table, offset);
      let samples = 0;
      for (const entry of entriesOf(bytes, table, 8)) samples += bytes.readUInt32BE(entry);
      this.#claim(samples, table, offset);
      if (samples > MAX_REORDERED_SAMPLES) throw tooMany(samples, table, offset, MAX_REORDERED_SAMPLES);
    }
  }

  /**
   * Runs of chunks (`stsc`) start at chunks that there are: a demuxer may go through all those before. To find a sample, it
   * goes through those before it in its chunk.
   */
  #checkChunks(bytes: Buffer, tables: readonly PlacedBox[], offset: number): void {
    const places = tables.filter(({ type }) => type === 'stco' || type === 'co64');
    const chunks = places.reduce((sum, { start, end }) => sum + Math.max(end - start, 0) / 4, 0);
    const maxSamples = MIN_CLAIMED_SAMPLES + this.#sizeBytes;
    for (const box of tables.filter(({ type }) => type === 'stsc')) {
      for (const entry of entriesOf(bytes, box, 12)) {
        const [first, samples] = [bytes.readUInt32BE(entry), bytes.readUInt32BE(entry + 4)];
        if (first > chunks) throw beyondBox(first, box, offset);
        if (samples > maxSamples) throw tooMany(samples, box, offset, maxSamples);
      }
    }
  }

  /** Returns how many samples the run has. */
  #checkRun(bytes: Buffer, box: PlacedBox, offset: number): number {
    if (box.start + 8 > box.end) return 0;
    const flags = bytes.readUIntBE(box.start + 1, 3);
    const count = bytes.readUInt32BE(box.start + 4);
    const bytesEach = 4 * PER_SAMPLE_FLAGS.filter((flag) => (flags & flag) !== 0).length;
    if (bytesEach === 0) this.#claim(count, box, offset);
    else if (count * bytesEach > box.end - box.start) throw beyondBox(count, box, offset);
    return count;
  }

  /** Sizes of four, eight or sixteen bits (ISO/IEC 14496-12 §8.7.3.3). */
  #checkCompactSizes(bytes: Buffer, box: PlacedBox, offset: number): void {
    if (box.start + 12 > box.end) return;
    const bits = bytes.readUInt8(box.start + 7);
    const count = bytes.readUInt32BE(box.start + 8);
    if (bits === 0 || Math.floor((count * bits) / 8) > box.end - box.start - 12) throw beyondBox(count, box, offset);
  }

  #claim(samples: number, box: PlacedBox, offset: number): void {
    this.#claimed += samples;
    const limit = MIN_CLAIMED_SAMPLES + this.#sizeBytes;
    if (this.#claimed > limit) throw tooMany(this.#claimed, box, offset, limit);
  }
}

/** A demuxer takes fragments of the same time out of its table one by one, moving all behind each of them. */
function refuseSameTimes(bytes: Buffer, box: PlacedBox, offset: number): void {
  if (box.start + 16 > box.end) return;
  const timeBytes = bytes.readUInt8(box.start) === 1 ? 8 : 4;
  const word = bytes.readUInt32BE(box.start + 8);
  const entryBytes = 2 * timeBytes + ((word >> 4) & 3) + ((word >> 2) & 3) + (word & 3) + 3;
  const times = new Set<string>();
  let count = 0;
  for (let at = box.start + 16; at + entryBytes <= box.end; at += entryBytes) {
    times.add(bytes.toString('latin1', at, at + timeBytes));
    count += 1;
  }
  if (count - times.size > MAX_SAME_TIMES) throw beyondBox(count, box, offset);
}

function checkTable(bytes: Buffer, box: PlacedBox, offset: number): void {
  const table = TABLES[box.type];
  if (table === undefined || box.start + table.countAt + 4 > box.end) return;
  const count = bytes.readUInt32BE(box.start + table.countAt);
  if (count * table.entryBytes > box.end - box.start - table.countAt - 4) throw beyondBox(count, box, offset);
}

/** Where the entries of a table start that are counted before them, behind version and flags. */
function* entriesOf(bytes: Buffer, { start, end }: PlacedBox, entryBytes: number): Generator<number> {
  let left = start + 8 <= end ? bytes.readUInt32BE(start + 4) : 0;
  for (let at = start + 8; left > 0 && at + entryBytes <= end; at += entryBytes) {
    yield at;
    left -= 1;
  }
}

function beyondBox(count: number, { type, start }: PlacedBox, offset: number): BrokenMedia {
  return new BrokenMedia(
    `is damaged: its "${shownType(type)}" box around byte ${offset + start} counts ${count} entries, more than there can be in it`,
  );
}

function tooMany(count: number, { type, start }: PlacedBox, offset: number, limit: number): BrokenMedia {
  return new BrokenMedia(
    `claims ${count} samples by its "${shownType(type)}" box around byte ${offset + start}, and a file like this may have ${limit}`,
  );
}

/** All boxes in `[start, end)`, at every depth. */
function* boxesIn(bytes: Buffer, start: number, end: number, depth = 0): Generator<PlacedBox> {
  for (const box of childrenIn(bytes, start, end)) {
    yield box;
    if (ENTERED.has(box.type) && depth < MAX_DEPTH) yield* boxesIn(bytes, box.start, box.end, depth + 1);
  }
}

/** The boxes directly in `[start, end)`. Demuxers read one that is too long for what holds it too, and none behind it. */
function* childrenIn(bytes: Buffer, start: number, end: number): Generator<PlacedBox> {
  for (let at = start; at + 8 <= end; ) {
    const compact = bytes.readUInt32BE(at);
    const isLarge = compact === 1 && at + 16 <= end;
    const size = isLarge ? Number(bytes.readBigUInt64BE(at + 8)) : compact === 0 ? end - at : compact;
    const boxEnd = Math.min(at + size, end);
    yield { type: bytes.toString('latin1', at + 4, at + 8), start: at + (isLarge ? 16 : 8), end: boxEnd };
    if (size < 8) return;
    at += size;
  }
}
