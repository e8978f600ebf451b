import { type Box, BoxFields } from '#formats/isobmff-boxes.ts';

/** Defaults of samples in fragments (ISO/IEC 14496-12 §8.8.3). */
export interface SampleDefaults {
  readonly duration: number;
  readonly sizeBytes: number;
}

/** Flags of a track fragment header (ISO/IEC 14496-12 §8.8.7). */
const BASE_OFFSET = 0x1;
const DESCRIPTION = 0x2;
const DEFAULT_DURATION = 0x8;
const DEFAULT_SIZE = 0x10;
/** Flags of a track run (§8.8.8); the last four say which fields each sample has. */
const DATA_OFFSET = 0x1;
const FIRST_FLAGS = 0x4;
const DURATION = 0x100;
const SIZE = 0x200;
const FLAGS = 0x400;
const COMPOSITION = 0x800;

/** Returns the defaults of a movie for the samples in fragments of one track. */
export function defaultsOf(moov: Box, trackId: number): SampleDefaults {
  for (const trex of moov.descendants('mvex', 'trex')) {
    const fields = new BoxFields(trex);
    fields.versionAndFlags();
    if (fields.uint(4) !== trackId) continue;
    fields.skip(4); // the sample description
    return { duration: fields.uint(4), sizeBytes: fields.uint(4) };
  }
  return { duration: 0, sizeBytes: 0 };
}

/** Yields the samples of a track in one fragment. `start` is the end of the fragment before it, in ticks. */
export function* samplesInFragment(
  moof: Box,
  trackId: number,
  movieDefaults: SampleDefaults,
  start: number,
): Generator<SampleLocation> {
  for (const traf of moof.descendants('traf')) {
    const header = headerOf(traf, movieDefaults);
    if (header?.trackId !== trackId) continue;
    const run = { ...header, start: decodeTimeOf(traf) ?? start, offset: header.base };
    for (const trun of traf.descendants('trun')) yield* samplesInRun(trun, run);
    ({ start } = run);
  }
}

interface TrackFragmentHeader extends SampleDefaults {
  readonly trackId: number;
  /** Base of the offsets of runs, in the file. */
  readonly base: number;
}

function headerOf(traf: Box, movieDefaults: SampleDefaults): TrackFragmentHeader | null {
  const tfhd = traf.descendant('tfhd');
  if (tfhd === undefined) return null;
  const fields = new BoxFields(tfhd);
  const { flags } = fields.versionAndFlags();
  const trackId = fields.uint(4);
  const base = (flags & BASE_OFFSET) === 0 ? (traf.parent?.header.offset ?? 0) : fields.uint(8);
  if ((flags & DESCRIPTION) !== 0) fields.skip(4);
  const duration = (flags & DEFAULT_DURATION) === 0 ? movieDefaults.duration : fields.uint(4);
  const sizeBytes = (flags & DEFAULT_SIZE) === 0 ? movieDefaults.sizeBytes : fields.uint(4);
  return { trackId, base, duration, sizeBytes };
}

function decodeTimeOf(traf: Box): number | null {
  const tfdt = traf.descendant('tfdt');
  if (tfdt === undefined) return null;
  const fields = new BoxFields(tfdt);
  return fields.uint(fields.versionAndFlags().version === 0 ? 4 : 8);
}

/**
 * Yields the samples of a run and moves `run` to their end: a run without an offset continues where the one before it
 * ended.
 */
function* samplesInRun(
  trun: Box,
  run: TrackFragmentHeader & { start: number; offset: number },
): Generator<SampleLocation> {
  const fields = new BoxFields(trun);
  const { flags } = fields.versionAndFlags();
  const count = fields.uint(4);
  if ((flags & DATA_OFFSET) !== 0) run.offset = run.base + fields.int32();
  if ((flags & FIRST_FLAGS) !== 0) fields.skip(4);
  for (let sample = 0; sample < count; sample += 1) {
    const duration = (flags & DURATION) === 0 ? run.duration : fields.uint(4);
    const sizeBytes = (flags & SIZE) === 0 ? run.sizeBytes : fields.uint(4);
    fields.skip(((flags & FLAGS) === 0 ? 0 : 4) + ((flags & COMPOSITION) === 0 ? 0 : 4));
    yield { start: run.start, duration, offset: run.offset, sizeBytes };
    run.start += duration;
    run.offset += sizeBytes;
  }
}

/** Offset and size of a sample in its file, in bytes, and its time, in ticks of its track. */
export interface SampleLocation {
  readonly start: number;
  readonly duration: number;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** Yields the samples of a sample table (ISO/IEC 14496-12 §8.5), never all at once: a table may declare four billion. */
export function* samplesInTable(stbl: Box): Generator<SampleLocation> {
  const durations = durationsIn(stbl.descendant('stts'));
  const sizes = sizesIn(stbl.descendant('stsz'));
  let start = 0;
  for (const chunk of chunksIn(stbl)) {
    let { offset } = chunk;
    for (let count = 0; count < chunk.sampleCount; count += 1) {
      const [duration, sizeBytes] = [durations.next().value, sizes.next().value];
      if (duration === undefined || sizeBytes === undefined) return;
      yield { start, duration, offset, sizeBytes };
      start += duration;
      offset += sizeBytes;
    }
  }
}

function* durationsIn(stts: Box | undefined): Generator<number, undefined> {
  if (stts === undefined) return;
  const { fields, count } = tableOf(stts);
  for (let entry = 0; entry < count; entry += 1) {
    const [sampleCount, duration] = [fields.uint(4), fields.uint(4)];
    for (let sample = 0; sample < sampleCount; sample += 1) yield duration;
  }
}

function* sizesIn(stsz: Box | undefined): Generator<number, undefined> {
  if (stsz === undefined) return;
  const fields = new BoxFields(stsz);
  fields.versionAndFlags();
  const [common, count] = [fields.uint(4), fields.uint(4)];
  for (let sample = 0; sample < count; sample += 1) yield common === 0 ? fields.uint(4) : common;
}

/** Yields the chunks with their sample counts (§8.7.4) and offsets (§8.7.5). */
function* chunksIn(stbl: Box): Generator<{ readonly offset: number; readonly sampleCount: number }> {
  const stsc = stbl.descendant('stsc');
  const co64 = stbl.descendant('co64');
  const offsetsBox = co64 ?? stbl.descendant('stco');
  if (stsc === undefined || offsetsBox === undefined) return;
  const { fields: runs, count: runCount } = tableOf(stsc);
  const { fields: offsets, count: chunkCount } = tableOf(offsetsBox);
  let runsRead = 0;
  const readRun = (): { firstChunk: number; sampleCount: number } | null => {
    if (runsRead === runCount) return null;
    runsRead += 1;
    const run = { firstChunk: runs.uint(4), sampleCount: runs.uint(4) };
    runs.skip(4); // the number of the sample description
    return run;
  };
  let sampleCount = 0;
  let next = readRun();
  for (let chunk = 1; chunk <= chunkCount; chunk += 1) {
    if (next !== null && chunk >= next.firstChunk) {
      sampleCount = next.sampleCount;
      next = readRun();
    }
    yield { offset: offsets.uint(co64 === undefined ? 4 : 8), sampleCount };
  }
}

function tableOf(box: Box): { readonly fields: BoxFields; readonly count: number } {
  const fields = new BoxFields(box);
  fields.versionAndFlags();
  return { fields, count: fields.uint(4) };
}
