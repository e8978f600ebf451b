import { AppError } from '#errors/app-error.ts';
import { Box, BoxFields, parseBoxHeader } from '#formats/isobmff-boxes.ts';

/** The times of a track in its init segment. */
interface TrackTimes {
  /** The handler type, such as `vide` or `soun` (ISO/IEC 14496-12 §8.4.3). */
  readonly handler: string;
  /** Ticks per second. */
  readonly timescale: number;
  /** Of its samples, in ticks, where fragments do not say another; 0 where it is unknown. */
  readonly sampleDuration: number;
}

/** The times of the tracks of an init segment, by their ids. */
export type InitTimes = ReadonlyMap<number, TrackTimes>;

/** When a fragment plays by its own boxes: in seconds of decoding time. */
export interface FragmentTimes {
  readonly startSeconds: number;
  readonly durationSeconds: number;
  /** The duration of one of its samples, on average. */
  readonly sampleSeconds: number;
}

/** Flags of `tfhd` and `trun` (ISO/IEC 14496-12 §8.8.7 and §8.8.8), with the lengths of the fields that they announce. */
const TFHD_FIELDS = [
  [0x000001, 8],
  [0x000002, 4],
] as const;
const TFHD_DEFAULT_DURATION = 0x000008;
const TRUN_FIELDS = [
  [0x000001, 4],
  [0x000004, 4],
] as const;
const TRUN_SAMPLE_DURATION = 0x000100;
const TRUN_SAMPLE_FIELDS = [0x000100, 0x000200, 0x000400, 0x000800] as const;

/** Reads the times of the tracks of a `moov` box; none where it cannot be read. */
export function initTimesIn(moov: Buffer): InitTimes {
  return readable(() => {
    const box = boxOf(moov);
    const defaults = new Map(
      [...box.descendants('mvex', 'trex')].map((trex) => {
        const fields = new BoxFields(trex);
        fields.skip(4);
        const id = fields.uint(4);
        fields.skip(4);
        return [id, fields.uint(4)] as const;
      }),
    );
    return new Map([...box.descendants('trak')].map((trak) => timesOfTrack(trak, defaults)));
  }, new Map<number, TrackTimes>());
}

function timesOfTrack(trak: Box, defaults: ReadonlyMap<number, number>): [number, TrackTimes] {
  const id = fieldBehindTimes(trak.descendant('tkhd'));
  const timescale = fieldBehindTimes(trak.descendant('mdia', 'mdhd'));
  const hdlr = trak.descendant('mdia', 'hdlr');
  const fields = hdlr === undefined ? null : new BoxFields(hdlr);
  fields?.skip(8);
  return [id, { handler: fields?.text(4) ?? '', timescale, sampleDuration: defaults.get(id) ?? 0 }];
}

/** Returns the 32-bit field behind the creation and modification times of a full box, which are as long as its version says. */
function fieldBehindTimes(box: Box | undefined): number {
  if (box === undefined) return 0;
  const fields = new BoxFields(box);
  const { version } = fields.versionAndFlags();
  fields.skip(version === 1 ? 16 : 8);
  return fields.uint(4);
}

/**
 * Reads when a fragment plays: the times of its first track of pictures, else of the track that lasts longest. Null where its
 * `moof` boxes do not say it, or cannot be read.
 */
export function fragmentTimesIn(moofs: readonly Buffer[], tracks: InitTimes): FragmentTimes | null {
  return readable(() => {
    const runs = moofs.flatMap((moof) => [...boxOf(moof).descendants('traf')]).map((traf) => timesOfRun(traf, tracks));
    const known = runs.filter((run) => run !== null);
    if (known.length === 0) return null;
    const byTrack = [...Map.groupBy(known, ({ track }) => track)].map(([track, own]) => ({
      isVideo: track.handler === 'vide',
      startSeconds: Math.min(...own.map(({ start }) => start)) / track.timescale,
      durationSeconds: own.reduce((sum, { ticks }) => sum + ticks, 0) / track.timescale,
      sampleCount: own.reduce((sum, { sampleCount }) => sum + sampleCount, 0),
    }));
    const longest = byTrack.toSorted((first, second) => second.durationSeconds - first.durationSeconds)[0];
    const chosen = byTrack.find(({ isVideo }) => isVideo) ?? longest;
    if (chosen === undefined) return null;
    const { startSeconds, durationSeconds, sampleCount } = chosen;
    return { startSeconds, durationSeconds, sampleSeconds: durationSeconds / sampleCount };
  }, null);
}

interface RunTimes {
  readonly track: TrackTimes;
  /** Decoding time and duration in ticks. */
  readonly start: number;
  readonly ticks: number;
  readonly sampleCount: number;
}

function timesOfRun(traf: Box, tracks: InitTimes): RunTimes | null {
  const tfhd = traf.descendant('tfhd');
  const tfdt = traf.descendant('tfdt');
  if (tfhd === undefined || tfdt === undefined) return null;
  const header = new BoxFields(tfhd);
  const { flags } = header.versionAndFlags();
  const track = tracks.get(header.uint(4));
  if (track === undefined || track.timescale === 0) return null;
  for (const [flag, length] of TFHD_FIELDS) if ((flags & flag) !== 0) header.skip(length);
  const sampleDuration = (flags & TFHD_DEFAULT_DURATION) === 0 ? track.sampleDuration : header.uint(4);
  const time = new BoxFields(tfdt);
  const start = time.uint(time.versionAndFlags().version === 1 ? 8 : 4);
  let ticks = 0;
  let sampleCount = 0;
  for (const trun of traf.descendants('trun')) {
    const run = readRun(trun, sampleDuration);
    ticks += run.ticks;
    sampleCount += run.sampleCount;
  }
  return ticks === 0 ? null : { track, start, ticks, sampleCount };
}

function readRun(trun: Box, sampleDuration: number): { ticks: number; sampleCount: number } {
  const fields = new BoxFields(trun);
  const { flags } = fields.versionAndFlags();
  const sampleCount = fields.uint(4);
  if ((flags & TRUN_SAMPLE_DURATION) === 0) return { ticks: sampleCount * sampleDuration, sampleCount };
  for (const [flag, length] of TRUN_FIELDS) if ((flags & flag) !== 0) fields.skip(length);
  const furtherBytes = TRUN_SAMPLE_FIELDS.slice(1).filter((flag) => (flags & flag) !== 0).length * 4;
  let ticks = 0;
  for (let sample = 0; sample < sampleCount; sample += 1) {
    ticks += fields.uint(4);
    fields.skip(furtherBytes);
  }
  return { ticks, sampleCount };
}

function boxOf(bytes: Buffer): Box {
  return new Box('', parseBoxHeader(bytes, 0, bytes.length), bytes);
}

/** Returns what is read, or another value where boxes are malformed: their bytes are bound whatever they say. */
function readable<Result>(read: () => Result, otherwise: Result): Result {
  try {
    return read();
  } catch (error) {
    if (error instanceof AppError) return otherwise;
    throw error;
  }
}
