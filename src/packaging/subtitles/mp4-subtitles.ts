import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import {
  Box,
  BoxFields,
  decodeTimeIn,
  editStartOf,
  fieldBehindTimes,
  parseTrack,
  readWholeBox,
  samplesPerChunk,
  type TrackDefaults,
  trackDefaultsIn,
  trackFragmentHeaderOf,
  walkTopLevelBoxes,
  wholeRunOf,
} from '#formats/isobmff-boxes.ts';
import { MAX_MOVIE_BYTES, subtitleTraksIn } from '../containers/mp4-tracks.ts';
import { parseTimedText } from './timed-text.ts';
import { type Cue, MAX_SUBTITLES_BYTES, makeCue, parseSubtitles, type Subtitles } from './web-vtt.ts';

/** Largest gap between pieces of one cue, in seconds. */
const JOINT_SECONDS = 0.002;

/**
 * Reads one subtitle track of an MP4 file: WebVTT (`wvtt`) or TTML (`stpp`), both of ISO/IEC 14496-30. `indexOfKind` counts
 * the subtitle tracks, from zero. Throws `SUBTITLES_TOO_LARGE`, `SUBTITLES_MALFORMED`, `SAMPLE_PAST_END` or `BMFF_…`.
 */
export async function readMp4Subtitles(
  source: ByteSource,
  indexOfKind: number,
  signal: AbortSignal,
): Promise<Subtitles> {
  const track = await readTextTrack(source, indexOfKind, signal);
  if (track === null) return { head: [], cues: [], zeroSeconds: null };
  const { sampleEntry, samples } = track;
  const read = sampleEntry.type === 'wvtt' ? cuesOfWebVtt : cuesOfTimedText;
  const cues = samples.flatMap((sample) => read(sample, source.name));
  const header = sampleEntry.type === 'wvtt' ? contentOf(sampleEntry, 'vttC', 8) : '';
  return { head: parseSubtitles(Buffer.from(header)).head, cues: joined(cues), zeroSeconds: null };
}

/** Reads the cues of a sample, which are shown during all of its time, each in a box (§6.6); `vtte` holds none. */
function cuesOfWebVtt({ startSeconds, endSeconds, payload }: TextSample, name: string): Cue[] {
  const header = {
    type: 'sample',
    offset: 0,
    sizeBytes: payload.length,
    headerSizeBytes: 0,
    sizeForm: 'compact',
  } as const;
  return [...new Box(name, header, payload).descendants('vttc')].flatMap((cue) => {
    const lines = contentOf(cue, 'payl').split(/\r?\n/);
    return makeCue({ startSeconds, endSeconds, settings: contentOf(cue, 'sttg'), lines }) ?? [];
  });
}

/** Returns the text of a child box. `skipBytes` stand before the child boxes. */
function contentOf(box: Box, type: string, skipBytes = 0): string {
  const found = [...box.children(skipBytes)].find((child) => child.type === type);
  return found === undefined ? '' : found.bytes.toString('utf8', found.header.headerSizeBytes);
}

/** Reads the cues of a TTML sample: its times are those of the movie, and it is shown during its own time only (§5.2). */
function cuesOfTimedText({ startSeconds, endSeconds, payload }: TextSample, name: string): Cue[] {
  return parseTimedText(payload, name).cues.flatMap((cue) => {
    const start = Math.max(cue.startSeconds, startSeconds);
    const end = Math.min(cue.endSeconds, endSeconds);
    return end <= start ? [] : [{ ...cue, startSeconds: start, endSeconds: end }];
  });
}

/** Joins cues that samples cut where other cues start or end. */
function joined(pieces: readonly Cue[]): Cue[] {
  const open = new Map<string, Cue & { endSeconds: number }>();
  const cues: Cue[] = [];
  for (const piece of pieces) {
    const key = JSON.stringify([piece.settings, piece.lines]);
    const last = open.get(key);
    if (last !== undefined && Math.abs(piece.startSeconds - last.endSeconds) <= JOINT_SECONDS) {
      last.endSeconds = piece.endSeconds;
      continue;
    }
    const cue = { ...piece };
    open.set(key, cue);
    cues.push(cue);
  }
  return cues.sort((first, second) => first.startSeconds - second.startSeconds);
}

/** One sample of a subtitle track, with its times in seconds of the movie. */
interface TextSample {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly payload: Buffer;
}

/** A subtitle track with all its samples. */
interface TextTrack {
  /** Sample entry: the format, and the data that all samples share. */
  readonly sampleEntry: Box;
  readonly samples: readonly TextSample[];
}

/** Limit of samples of one track: ten in every second of a day. */
const MAX_SAMPLES = 1_000_000;
/** Limit of a `moof` box in memory, in bytes. */
const MAX_FRAGMENT_BYTES = 8 * 1024 * 1024;
/** Bytes of one read of headers or of samples. */
const WINDOW_SIZE_BYTES = 256 * 1024;

/**
 * Reads a subtitle track of an MP4 file from its sample table and its fragments; null where there is none of that index.
 * Throws `BMFF_…` for inconsistent boxes, `SAMPLE_PAST_END` or `SUBTITLES_TOO_LARGE`.
 */
async function readTextTrack(source: ByteSource, indexOfKind: number, signal: AbortSignal): Promise<TextTrack | null> {
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const { boxes } = await walkTopLevelBoxes(source, window, () => undefined);
  const movie = boxes.find(({ type }) => type === 'moov');
  if (movie === undefined) return null;
  const moov = await readWholeBox(source.name, window, movie, MAX_MOVIE_BYTES);
  const trak = subtitleTraksIn(moov)[indexOfKind];
  const [sampleEntry] = trak?.descendant('mdia', 'minf', 'stbl', 'stsd')?.children(8) ?? [];
  if (trak === undefined || sampleEntry === undefined) return null;
  const locations = new SampleList(source);
  for (const stbl of trak.descendants('mdia', 'minf', 'stbl')) locations.addAll(samplesInTable(stbl));
  const trackId = parseTrack(trak).id ?? 0;
  const defaults = [...trackDefaultsIn(moov.descendants('mvex'))].find((each) => each.trackId === trackId);
  for (const header of boxes.filter(({ type }) => type === 'moof')) {
    const moof = await readWholeBox(source.name, window, header, MAX_FRAGMENT_BYTES);
    locations.addAll(samplesInFragment(moof, trackId, defaults ?? NO_DEFAULTS, locations.end));
  }
  return { sampleEntry, samples: await readSamples(locations.list, clockOf(moov, trak), source, signal) };
}

/** Collects samples up to the limits. */
class SampleList {
  readonly list: SampleLocation[] = [];
  readonly #source: ByteSource;
  #sizeBytes = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** End of the last sample, in ticks. */
  get end(): number {
    const last = this.list.at(-1);
    return last === undefined ? 0 : last.start + last.duration;
  }

  addAll(locations: Iterable<SampleLocation>): void {
    const { name, sizeBytes } = this.#source;
    for (const location of locations) {
      const end = location.offset + location.sizeBytes;
      if (location.offset < 0 || end > sizeBytes) throw new AppError('SAMPLE_PAST_END', { name, end, sizeBytes });
      this.#sizeBytes += location.sizeBytes;
      if (this.#sizeBytes > MAX_SUBTITLES_BYTES || this.list.length === MAX_SAMPLES) {
        throw new AppError('SUBTITLES_TOO_LARGE', {
          name,
          limitBytes: MAX_SUBTITLES_BYTES,
          maxSamples: MAX_SAMPLES,
        });
      }
      this.list.push(location);
    }
  }
}

/** Converts ticks of a track to seconds of the movie. */
interface Clock {
  readonly timescale: number;
  readonly shiftSeconds: number;
}

function clockOf(moov: Box, trak: Box): Clock {
  const timescale = timescaleOf(trak.descendant('mdia', 'mdhd'));
  const { emptyTicks, mediaTicks } = editStartOf(trak);
  return { timescale, shiftSeconds: emptyTicks / timescaleOf(moov.descendant('mvhd')) - mediaTicks / timescale };
}

function timescaleOf(header: Box | undefined): number {
  return (header && fieldBehindTimes(header)) || 1;
}

async function readSamples(
  locations: readonly SampleLocation[],
  { timescale, shiftSeconds }: Clock,
  source: ByteSource,
  signal: AbortSignal,
): Promise<TextSample[]> {
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const samples: TextSample[] = [];
  for (const { start, duration, offset, sizeBytes } of locations) {
    const endSeconds = (start + duration) / timescale + shiftSeconds;
    if (sizeBytes === 0 || endSeconds <= 0) continue;
    samples.push({
      startSeconds: Math.max(start / timescale + shiftSeconds, 0),
      endSeconds,
      payload: Buffer.from(window.buffered(offset, sizeBytes) ?? (await window.read(offset, sizeBytes))),
    });
  }
  return samples;
}

/** What a movie says of samples where a fragment does not. */
type SampleDefaults = Omit<TrackDefaults, 'trackId'>;

const NO_DEFAULTS: SampleDefaults = { sampleDuration: 0, sampleSizeBytes: 0 };

/** Yields the samples of a track in one fragment. `start` is the end of the fragment before it, in ticks. */
function* samplesInFragment(
  moof: Box,
  trackId: number,
  defaults: SampleDefaults,
  start: number,
): Generator<SampleLocation> {
  for (const traf of moof.descendants('traf')) {
    const tfhd = traf.descendant('tfhd');
    const header = tfhd && trackFragmentHeaderOf(tfhd);
    if (header?.trackId !== trackId) continue;
    const tfdt = traf.descendant('tfdt');
    const base = header.baseOffset ?? moof.header.offset;
    const sampleDuration = header.sampleDuration ?? defaults.sampleDuration;
    const sampleSizeBytes = header.sampleSizeBytes ?? defaults.sampleSizeBytes;
    const run = { base, sampleDuration, sampleSizeBytes, start: tfdt ? decodeTimeIn(tfdt) : start, offset: base };
    for (const trun of traf.descendants('trun')) yield* samplesInRun(trun, run);
    ({ start } = run);
  }
}

/**
 * Yields the samples of a run and moves `run` to their end: a run without an offset continues where the one
 * before it ended.
 */
function* samplesInRun(
  trun: Box,
  run: SampleDefaults & { readonly base: number; start: number; offset: number },
): Generator<SampleLocation> {
  const { bytes } = trun;
  const { sampleCount, dataOffset, strideBytes, durationAt, sizeAt } = wholeRunOf(trun);
  if (dataOffset !== null) run.offset = run.base + dataOffset;
  for (let sample = 0, at = 0; sample < sampleCount; sample += 1, at += strideBytes) {
    const duration = durationAt === null ? run.sampleDuration : bytes.readUInt32BE(durationAt + at);
    const sizeBytes = sizeAt === null ? run.sampleSizeBytes : bytes.readUInt32BE(sizeAt + at);
    yield { start: run.start, duration, offset: run.offset, sizeBytes };
    run.start += duration;
    run.offset += sizeBytes;
  }
}

/** Offset and size of a sample in its file, in bytes, and its time, in ticks of its track. */
interface SampleLocation {
  readonly start: number;
  readonly duration: number;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** Yields the samples of a sample table (ISO/IEC 14496-12 §8.5), never all at once: a table may declare four billion. */
function* samplesInTable(stbl: Box): Generator<SampleLocation> {
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
  const co64 = stbl.descendant('co64');
  const offsetsBox = co64 ?? stbl.descendant('stco');
  if (offsetsBox === undefined) return;
  const { fields: offsets, count } = tableOf(offsetsBox);
  const counts = samplesPerChunk(stbl);
  for (let chunk = 0; chunk < count; chunk += 1) {
    yield { offset: offsets.uint(co64 === undefined ? 4 : 8), sampleCount: counts.next().value ?? 0 };
  }
}

function tableOf(box: Box): { readonly fields: BoxFields; readonly count: number } {
  const fields = new BoxFields(box);
  fields.versionAndFlags();
  return { fields, count: fields.uint(4) };
}
