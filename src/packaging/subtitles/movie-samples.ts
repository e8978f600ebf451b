import type { ByteSource } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { Box } from '#formats/isobmff/box.ts';
import { BoxFields } from '#formats/isobmff/box-fields.ts';
import { walkFile } from '#formats/isobmff/file-boxes.ts';
import { parseTrack } from '#formats/isobmff/tracks.ts';
import { readWholeBox } from '#formats/isobmff/whole-box.ts';
import { ReadWindow } from '#formats/read-window.ts';
import { LARGEST_MOVIE_BYTES, subtitleTraksIn } from '../probing/movie-tracks.ts';
import { defaultsOf, placesInFragment } from './fragment-samples.ts';
import { placesInTable, type SamplePlace } from './sample-places.ts';
import { LARGEST_SUBTITLES_BYTES } from './web-vtt.ts';

/** One sample of a track of subtitles, and when it is shown, in seconds of the movie. */
export interface TextSample {
  readonly startSeconds: number;
  readonly endSeconds: number;
  readonly payload: Buffer;
}

/** A track of subtitles, whole. */
export interface TextTrack {
  /** What its samples are, with what they share. */
  readonly sampleEntry: Box;
  readonly samples: readonly TextSample[];
}

/** Bound of the samples of one track: ten in every second of a day. */
const MAX_SAMPLES = 1_000_000;
/** Bound of a `moof` box in memory, in bytes. */
const LARGEST_FRAGMENT_BYTES = 8 * 1024 * 1024;
/** One read of headers or of samples fetches so many bytes. */
const WINDOW_SIZE_BYTES = 256 * 1024;

/**
 * Reads a track of subtitles out of an MP4 file, from its sample table and its fragments. `indexOfKind` counts the tracks
 * of subtitles, from zero; null where there is none of that number. Throws an AppError: BMFF_… for boxes that do not fit, SUBTITLES_TOO_LARGE.
 */
export async function readTextTrack(
  source: ByteSource,
  indexOfKind: number,
  signal: AbortSignal,
): Promise<TextTrack | null> {
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const { boxes } = await walkFile(source, window, () => undefined);
  const movie = boxes.find(({ type }) => type === 'moov');
  if (movie === undefined) return null;
  const moov = await readWholeBox(source.name, window, movie, LARGEST_MOVIE_BYTES);
  const trak = subtitleTraksIn(moov)[indexOfKind];
  const [sampleEntry] = trak?.descendant('mdia', 'minf', 'stbl', 'stsd')?.children(8) ?? [];
  if (trak === undefined || sampleEntry === undefined) return null;
  const places = new SampleList(source);
  for (const stbl of trak.descendants('mdia', 'minf', 'stbl')) places.addAll(placesInTable(stbl));
  const trackId = parseTrack(trak).id ?? 0;
  const defaults = defaultsOf(moov, trackId);
  for (const header of boxes.filter(({ type }) => type === 'moof')) {
    const moof = await readWholeBox(source.name, window, header, LARGEST_FRAGMENT_BYTES);
    places.addAll(placesInFragment(moof, trackId, defaults, places.end));
  }
  return { sampleEntry, samples: await readSamples(places.list, clockOf(moov, trak), source, signal) };
}

/** Gathers samples up to the bounds of what is read. */
class SampleList {
  readonly list: SamplePlace[] = [];
  readonly #source: ByteSource;
  #sizeBytes = 0;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** Where the last sample ends, in ticks. */
  get end(): number {
    const last = this.list.at(-1);
    return last === undefined ? 0 : last.start + last.duration;
  }

  addAll(places: Iterable<SamplePlace>): void {
    const { name, sizeBytes } = this.#source;
    for (const place of places) {
      const end = place.offset + place.sizeBytes;
      if (place.offset < 0 || end > sizeBytes) throw new AppError('SAMPLE_PAST_END', { name, end, sizeBytes });
      this.#sizeBytes += place.sizeBytes;
      if (this.#sizeBytes > LARGEST_SUBTITLES_BYTES || this.list.length === MAX_SAMPLES) {
        throw new AppError('SUBTITLES_TOO_LARGE', {
          name,
          limitBytes: LARGEST_SUBTITLES_BYTES,
          maxSamples: MAX_SAMPLES,
        });
      }
      this.list.push(place);
    }
  }
}

/** Turns ticks of a track into seconds of the movie. */
interface Clock {
  readonly timescale: number;
  readonly shiftSeconds: number;
}

function clockOf(moov: Box, trak: Box): Clock {
  const timescale = timescaleOf(trak.descendant('mdia', 'mdhd'));
  return { timescale, shiftSeconds: shiftOf(trak, timescaleOf(moov.descendant('mvhd')), timescale) };
}

/** Both headers have it behind the times at which they were made and changed (ISO/IEC 14496-12 §8.2.2, §8.4.2). */
function timescaleOf(header: Box | undefined): number {
  if (header === undefined) return 1;
  const fields = new BoxFields(header);
  fields.skip(fields.versionAndFlags().version === 0 ? 8 : 16);
  return fields.uint(4) || 1;
}

/** What an edit list moves a track by: empty edits put it off, and the first of media may start within it (§8.6.6). */
function shiftOf(trak: Box, movieTimescale: number, timescale: number): number {
  const elst = trak.descendant('edts', 'elst');
  if (elst === undefined) return 0;
  const fields = new BoxFields(elst);
  const widthBytes = fields.versionAndFlags().version === 0 ? 4 : 8;
  const nowhere = 2 ** (widthBytes * 8) - 1;
  let shiftSeconds = 0;
  for (let left = fields.uint(4); left > 0; left -= 1) {
    const [duration, mediaTime] = [fields.uint(widthBytes), fields.uint(widthBytes)];
    if (mediaTime !== nowhere) return shiftSeconds - mediaTime / timescale;
    shiftSeconds += duration / movieTimescale;
    fields.skip(4); // the rate
  }
  return shiftSeconds;
}

async function readSamples(
  places: readonly SamplePlace[],
  { timescale, shiftSeconds }: Clock,
  source: ByteSource,
  signal: AbortSignal,
): Promise<TextSample[]> {
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const samples: TextSample[] = [];
  for (const { start, duration, offset, sizeBytes } of places) {
    const endSeconds = (start + duration) / timescale + shiftSeconds;
    if (sizeBytes === 0 || endSeconds <= 0) continue;
    samples.push({
      startSeconds: Math.max(start / timescale + shiftSeconds, 0),
      endSeconds,
      payload: Buffer.from(window.held(offset, sizeBytes) ?? (await window.read(offset, sizeBytes))),
    });
  }
  return samples;
}
