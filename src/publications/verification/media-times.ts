import { AppError } from '#errors/app-error.ts';
import {
  type Box,
  decodeTimeIn,
  editStartOf,
  fieldBehindTimes,
  handlerTypeIn,
  trackDefaultsIn,
  trackFragmentHeaderOf,
  wholeRunOf,
} from '#formats/isobmff-boxes.ts';
import type { MediaPart } from '../media-part.ts';
import { type Codec, codecsOfTrack, isEncrypted } from './codecs.ts';

/** The times of a track in its init segment. */
interface TrackTimes {
  /** The handler type, such as `vide` or `soun` (ISO/IEC 14496-12 §8.4.3). */
  readonly handler: string;
  readonly codecs: readonly Codec[];
  readonly isEncrypted: boolean;
  /** Ticks per second. */
  readonly timescale: number;
  /** Of its samples, in ticks, where fragments do not say another; 0 where it is unknown. */
  readonly sampleDuration: number;
  /** The media time that its edit list begins with, in ticks, less the empty time before it. */
  readonly editStart: number;
}

/** The times of the tracks of an init segment, by their ids. */
export type InitTimes = ReadonlyMap<number, TrackTimes>;

/** When a fragment plays by its own boxes, in seconds of presentation time: behind the composition offsets and the edit list. */
export interface FragmentTimes {
  readonly isOfPictures: boolean;
  /** True where its samples may be encrypted, by its init segment. */
  readonly isEncrypted: boolean;
  readonly startSeconds: number;
  readonly durationSeconds: number;
  /** The duration of one of its samples, on average. */
  readonly sampleSeconds: number;
}

/** Seconds that playlists may cut or move, beside half of the last digit of the times that they state. */
export const MAX_SHIFT_SECONDS = 0.1;

/** A fragment as it was signed: when it plays by its own boxes, and its position in its map. */
export interface SignedTimes extends FragmentTimes {
  readonly position: number;
  /** Tells its manifest from others. */
  readonly manifest: string | number | null;
}

/** Returns the times of a fragment; null where they are not known, or it is not as it was signed. */
export type TimesOf = (init: MediaPart, fragment: MediaPart) => SignedTimes | null;

/** Reads the times of the tracks of a `moov` box; none where it cannot be read. */
export function initTimesIn(moov: Box): InitTimes {
  return readable(() => {
    const defaults = new Map(
      Array.from(trackDefaultsIn(moov.descendants('mvex')), (each) => [each.trackId, each.sampleDuration]),
    );
    const movieTimescale = fieldOf(moov.descendant('mvhd'));
    return new Map([...moov.descendants('trak')].map((trak) => timesOfTrack(trak, defaults, movieTimescale)));
  }, new Map<number, TrackTimes>());
}

/** Returns the handler types and the codecs of tracks. */
export function kindsOf(tracks: InitTimes): { handlers: ReadonlySet<string>; codecs: readonly Codec[] } {
  const all = [...tracks.values()];
  return { handlers: new Set(all.map(({ handler }) => handler)), codecs: all.flatMap(({ codecs }) => codecs) };
}

function timesOfTrack(trak: Box, defaults: ReadonlyMap<number, number>, movieTimescale: number): [number, TrackTimes] {
  const id = fieldOf(trak.descendant('tkhd'));
  const timescale = fieldOf(trak.descendant('mdia', 'mdhd'));
  const hdlr = trak.descendant('mdia', 'hdlr');
  const { emptyTicks, mediaTicks } = editStartOf(trak);
  const editStart = mediaTicks - (movieTimescale === 0 ? 0 : (emptyTicks * timescale) / movieTimescale);
  const handler = hdlr === undefined ? '' : handlerTypeIn(hdlr);
  const codecs = readable(() => codecsOfTrack(trak, handler), []);
  const isProtected = readable(() => isEncrypted(trak), false);
  return [
    id,
    { handler, codecs, isEncrypted: isProtected, timescale, sampleDuration: defaults.get(id) ?? 0, editStart },
  ];
}

function fieldOf(header: Box | undefined): number {
  return header === undefined ? 0 : fieldBehindTimes(header);
}

/**
 * Reads when a fragment plays: the times of its first track of pictures, else of the track that lasts longest. Null where its
 * `moof` boxes do not say it, or cannot be read.
 */
export function fragmentTimesIn(moofs: readonly Box[], tracks: InitTimes): FragmentTimes | null {
  return timesOfAll(moofs.flatMap((moof) => runTimesIn(moof, tracks)));
}

/** Reads when the runs of samples of a `moof` box play, of each track; none where it does not say it, or cannot be read. */
export function runTimesIn(moof: Box, tracks: InitTimes): RunTimes[] {
  return readable(
    () => [...moof.descendants('traf')].map((traf) => timesOfRun(traf, tracks)).filter((run) => run !== null),
    [],
  );
}

/** Returns when runs of samples play together, as `fragmentTimesIn` does; null for none. */
export function timesOfAll(runs: readonly RunTimes[]): FragmentTimes | null {
  const byTrack = [...Map.groupBy(runs, ({ track }) => track)].map(([track, own]) => timesOfRuns(track, own));
  const longest = byTrack.toSorted((first, second) => second.durationSeconds - first.durationSeconds)[0];
  return byTrack.find(({ isOfPictures }) => isOfPictures) ?? longest ?? null;
}

function timesOfRuns(
  { handler, isEncrypted, timescale, editStart }: TrackTimes,
  runs: readonly RunTimes[],
): FragmentTimes {
  const ticks = runs.reduce((sum, run) => sum + run.ticks, 0);
  const sampleCount = runs.reduce((sum, run) => sum + run.sampleCount, 0);
  const start = runs.reduce((least, run) => Math.min(least, run.start), Number.POSITIVE_INFINITY) - editStart;
  // Nothing in front of the edit list plays.
  const hidden = Math.min(Math.max(-start, 0), ticks);
  return {
    isOfPictures: handler === 'vide',
    isEncrypted,
    startSeconds: (start + hidden) / timescale,
    durationSeconds: (ticks - hidden) / timescale,
    sampleSeconds: ticks / sampleCount / timescale,
  };
}

/** When the samples of one track in a `moof` box play. */
export interface RunTimes {
  readonly track: TrackTimes;
  /** The first time of presentation, and the duration, in ticks. */
  readonly start: number;
  readonly ticks: number;
  readonly sampleCount: number;
}

function timesOfRun(traf: Box, tracks: InitTimes): RunTimes | null {
  const boxes = [...traf.children()];
  const tfhd = boxes.find(({ type }) => type === 'tfhd');
  const tfdt = boxes.find(({ type }) => type === 'tfdt');
  if (tfhd === undefined || tfdt === undefined) return null;
  const header = trackFragmentHeaderOf(tfhd);
  const track = tracks.get(header.trackId);
  if (track === undefined || track.timescale === 0) return null;
  const sampleDuration = header.sampleDuration ?? track.sampleDuration;
  const decodingStart = decodeTimeIn(tfdt);
  let ticks = 0;
  let sampleCount = 0;
  let first = Number.POSITIVE_INFINITY;
  for (const box of boxes) {
    if (box.type !== 'trun') continue;
    const run = readRun(box, sampleDuration);
    first = Math.min(first, ticks + run.first);
    ticks += run.ticks;
    sampleCount += run.sampleCount;
  }
  return ticks === 0 ? null : { track, start: decodingStart + first, ticks, sampleCount };
}

/** Reads the ticks of a run of samples, and the first one at which one of them is presented. */
function readRun(trun: Box, sampleDuration: number): { first: number; ticks: number; sampleCount: number } {
  const { sampleCount, strideBytes, durationAt, compositionOffsetAt, hasSignedCompositionOffsets } = wholeRunOf(trun);
  if (durationAt === null && compositionOffsetAt === null) {
    return { first: 0, ticks: sampleCount * sampleDuration, sampleCount };
  }
  const { bytes } = trun;
  const readOffset = (at: number) => (hasSignedCompositionOffsets ? bytes.readInt32BE(at) : bytes.readUInt32BE(at));
  let [first, ticks] = [Number.POSITIVE_INFINITY, 0];
  for (let sample = 0, at = 0; sample < sampleCount; sample += 1, at += strideBytes) {
    first = Math.min(first, ticks + (compositionOffsetAt === null ? 0 : readOffset(compositionOffsetAt + at)));
    ticks += durationAt === null ? sampleDuration : bytes.readUInt32BE(durationAt + at);
  }
  return { first, ticks, sampleCount };
}

/** Returns what is read, or another value where boxes are malformed: their bytes are bound whatever they say. */
export function readable<Result>(read: () => Result, otherwise: Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return otherwise;
    throw error;
  }
}
