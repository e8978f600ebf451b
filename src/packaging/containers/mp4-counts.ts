import { boxHeadersIn, printableType } from '#formats/isobmff-boxes.ts';
import { BrokenMedia } from '../probed-file.ts';

/** Samples that a file of any size may declare without a byte for each of them. */
const MIN_DECLARED_SAMPLES = 100_000;
/** Limit of samples that are shown in another order than stored: three days of video at 30 frames per second. */
const MAX_REORDERED_SAMPLES = 8_000_000;
/** Limit of samples of one fragment: 40 seconds of uncompressed audio, in which each is one sample. */
const MAX_FRAGMENT_SAMPLES = 2_000_000;
/** Limit of entries in a fragment index that repeat the time of another one. */
const MAX_SAME_TIMES = 10_000;
/** Depth limit of nested boxes; the deepest that matters is at six. */
const MAX_DEPTH = 16;

const ENTERED = new Set('moov trak mdia minf stbl edts mvex moof traf mfra'.split(' '));

/** Bytes of an entry, and offset of the entry count after the box header, in tables with a count. */
const TABLES: ReadonlyMap<string, { readonly entryBytes: number; readonly countAt: number }> = new Map(
  Object.entries({
    stts: { entryBytes: 8, countAt: 4 },
    ctts: { entryBytes: 8, countAt: 4 },
    stsc: { entryBytes: 12, countAt: 4 },
    stco: { entryBytes: 4, countAt: 4 },
    co64: { entryBytes: 8, countAt: 4 },
    stss: { entryBytes: 4, countAt: 4 },
    elst: { entryBytes: 12, countAt: 4 },
  }),
);

/** Flags of a track run that give each sample a field of four bytes (ISO/IEC 14496-12 §8.8.8). */
const PER_SAMPLE_FLAGS = [0x100, 0x200, 0x400, 0x800];

/** A box in memory; `[start, end)` is its content, up to its parent's end. */
interface BoxSpan {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Refuses counts that are impossible in a file of this size, before a demuxer allocates an object for each sample: nine
 * kilobytes may declare four billion. Checks tables against their bytes. Checks counts without bytes of their own (runs in
 * which all samples have the same size and duration, and tables that repeat a value) against the size of the file.
 */
export class SampleCounts {
  readonly #sizeBytes: number;
  #declared = 0;

  /** `sizeBytes` is the size of the file. */
  constructor(sizeBytes: number) {
    this.#sizeBytes = sizeBytes;
  }

  /**
   * Checks boxes of a movie (`moov`, `moof`, `mfra`) and everything in them. They start at `offset`. Throws BrokenMedia.
   */
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
      throw new BrokenMedia(`declares ${inFragment} samples in one fragment, more than ${MAX_FRAGMENT_SAMPLES}`);
    }
  }

  /** Limits samples whose decoding and presentation times differ (`ctts`): a demuxer sorts them one by one. */
  #checkSampleTable(bytes: Buffer, { start, end }: BoxSpan, offset: number): void {
    const tables = [...childrenIn(bytes, start, end)];
    const offsets = tables.filter(({ type }) => type === 'ctts');
    this.#checkChunks(bytes, tables, offset);
    if (offsets.length === 0) return;
    for (const table of [...offsets, ...tables.filter(({ type }) => type === 'stts')]) {
      checkTable(bytes, table, offset);
      let samples = 0;
      for (const entry of entriesOf(bytes, table, 8)) samples += bytes.readUInt32BE(entry);
      this.#declare(samples, table, offset);
      if (samples > MAX_REORDERED_SAMPLES) throw tooMany(samples, table, offset, MAX_REORDERED_SAMPLES);
    }
  }

  /**
   * Refuses runs of chunks (`stsc`) that start after the last chunk, because a demuxer may visit all chunks before; and too
   * many samples in a chunk, because it visits those before the one that it looks for.
   */
  #checkChunks(bytes: Buffer, tables: readonly BoxSpan[], offset: number): void {
    const chunkOffsets = tables.filter(({ type }) => type === 'stco' || type === 'co64');
    const chunks = chunkOffsets.reduce((sum, { start, end }) => sum + Math.max(end - start, 0) / 4, 0);
    const maxSamples = MIN_DECLARED_SAMPLES + this.#sizeBytes;
    for (const box of tables.filter(({ type }) => type === 'stsc')) {
      for (const entry of entriesOf(bytes, box, 12)) {
        const [first, samples] = [bytes.readUInt32BE(entry), bytes.readUInt32BE(entry + 4)];
        if (first > chunks) throw beyondBox(first, box, offset);
        if (samples > maxSamples) throw tooMany(samples, box, offset, maxSamples);
      }
    }
  }

  /** Returns the number of samples of the run. */
  #checkRun(bytes: Buffer, box: BoxSpan, offset: number): number {
    if (box.start + 8 > box.end) return 0;
    const flags = bytes.readUIntBE(box.start + 1, 3);
    const count = bytes.readUInt32BE(box.start + 4);
    const bytesEach = 4 * PER_SAMPLE_FLAGS.filter((flag) => (flags & flag) !== 0).length;
    if (bytesEach === 0) this.#declare(count, box, offset);
    else if (count * bytesEach > box.end - box.start) throw beyondBox(count, box, offset);
    return count;
  }

  /** Checks sizes of four, eight or sixteen bits (ISO/IEC 14496-12 §8.7.3.3). */
  #checkCompactSizes(bytes: Buffer, box: BoxSpan, offset: number): void {
    if (box.start + 12 > box.end) return;
    const bits = bytes.readUInt8(box.start + 7);
    const count = bytes.readUInt32BE(box.start + 8);
    if (bits === 0 || Math.floor((count * bits) / 8) > box.end - box.start - 12) throw beyondBox(count, box, offset);
  }

  #declare(samples: number, box: BoxSpan, offset: number): void {
    this.#declared += samples;
    const limit = MIN_DECLARED_SAMPLES + this.#sizeBytes;
    if (this.#declared > limit) throw tooMany(this.#declared, box, offset, limit);
  }
}

/** Refuses many fragments of the same time: a demuxer removes them one by one from an array. */
function refuseSameTimes(bytes: Buffer, box: BoxSpan, offset: number): void {
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

function checkTable(bytes: Buffer, box: BoxSpan, offset: number): void {
  const table = TABLES.get(box.type);
  if (table === undefined || box.start + table.countAt + 4 > box.end) return;
  const count = bytes.readUInt32BE(box.start + table.countAt);
  if (count * table.entryBytes > box.end - box.start - table.countAt - 4) throw beyondBox(count, box, offset);
}

/** Yields the offsets of the entries of a table whose count stands after version and flags. */
function* entriesOf(bytes: Buffer, { start, end }: BoxSpan, entryBytes: number): Generator<number> {
  let left = start + 8 <= end ? bytes.readUInt32BE(start + 4) : 0;
  for (let at = start + 8; left > 0 && at + entryBytes <= end; at += entryBytes) {
    yield at;
    left -= 1;
  }
}

function beyondBox(count: number, { type, start }: BoxSpan, offset: number): BrokenMedia {
  return new BrokenMedia(
    `is damaged: its "${printableType(type)}" box around byte ${offset + start} counts ${count} entries, more than there can be in it`,
  );
}

function tooMany(count: number, { type, start }: BoxSpan, offset: number, limit: number): BrokenMedia {
  return new BrokenMedia(
    `declares ${count} samples by its "${printableType(type)}" box around byte ${offset + start}, and a file like this may have ${limit}`,
  );
}

/** Yields all boxes in `[start, end)`, at every depth. */
function* boxesIn(bytes: Buffer, start: number, end: number, depth = 0): Generator<BoxSpan> {
  for (const box of childrenIn(bytes, start, end)) {
    yield box;
    if (ENTERED.has(box.type) && depth < MAX_DEPTH) yield* boxesIn(bytes, box.start, box.end, depth + 1);
  }
}

/** Yields the boxes directly in `[start, end)`. Like demuxers, reads one that exceeds its parent, and none after it. */
function* childrenIn(bytes: Buffer, start: number, end: number): Generator<BoxSpan> {
  for (const { type, offset, headerSizeBytes, sizeBytes } of boxHeadersIn(bytes.subarray(0, end), start)) {
    yield { type, start: offset + headerSizeBytes, end: Math.min(offset + sizeBytes, end) };
  }
}
