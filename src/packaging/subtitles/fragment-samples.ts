import type { Box } from '#formats/isobmff/box.ts';
import { BoxFields } from '#formats/isobmff/box-fields.ts';
import type { SamplePlace } from './sample-places.ts';

/** What samples of fragments are where nothing else is said of them (ISO/IEC 14496-12 §8.8.3). */
export interface SampleDefaults {
  readonly duration: number;
  readonly sizeBytes: number;
}

/** Flags of a track fragment header (ISO/IEC 14496-12 §8.8.7). */
const BASE_OFFSET = 0x1;
const DESCRIPTION = 0x2;
const DEFAULT_DURATION = 0x8;
const DEFAULT_SIZE = 0x10;
/** Flags of a run of samples (§8.8.8); the last ones say what is written of each sample. */
const DATA_OFFSET = 0x1;
const FIRST_FLAGS = 0x4;
const DURATION = 0x100;
const SIZE = 0x200;
const FLAGS = 0x400;
const COMPOSITION = 0x800;

/** What a movie says of the samples in its fragments of one track. */
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

/** The samples of a track in one fragment. `start` is where the fragment before it ended, in ticks. */
export function* placesInFragment(
  moof: Box,
  trackId: number,
  movieDefaults: SampleDefaults,
  start: number,
): Generator<SamplePlace> {
  for (const traf of moof.descendants('traf')) {
    const header = headerOf(traf, movieDefaults);
    if (header?.trackId !== trackId) continue;
    const run = { ...header, start: decodeTimeOf(traf) ?? start, offset: header.base };
    for (const trun of traf.descendants('trun')) yield* placesInRun(trun, run);
    ({ start } = run);
  }
}

interface TrackFragmentHeader extends SampleDefaults {
  readonly trackId: number;
  /** What offsets of runs count from, in the file. */
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

/** Moves `run` on to the end of what it yields: a run that says no offset goes on where the one before it ended. */
function* placesInRun(trun: Box, run: TrackFragmentHeader & { start: number; offset: number }): Generator<SamplePlace> {
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
