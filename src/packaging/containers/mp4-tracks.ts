import { type ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { itemAt } from '#errors/assert.ts';
import {
  type Box,
  BoxFields,
  fieldBehindTimes,
  parseSegmentIndex,
  parseTrack,
  readWholeBox,
  type Track,
  walkTopLevelBoxes,
} from '#formats/isobmff-boxes.ts';
import { BrokenMedia } from '../probed-file.ts';
import { SampleCounts } from './mp4-counts.ts';

/** Limit of the `moov` box in memory, in bytes. A day of video has tens of megabytes. */
export const MAX_MOVIE_BYTES = 64 * 1024 * 1024;
/** Limit of a segment index in memory, in bytes; it has at most 65,535 entries. */
const MAX_INDEX_BYTES = 1024 * 1024;
/** Bytes of one read of headers. */
const WINDOW_SIZE_BYTES = 256 * 1024;

/** Tracks of a file that are neither audio nor video. */
export interface OtherTracks {
  /** Subtitles in the order of the file, with their sample entry (`tx3g`, `wvtt`, `stpp`). */
  readonly subtitles: readonly { readonly codecId: string; readonly language: string | null }[];
  /** Nouns for everything else. */
  readonly nouns: readonly string[];
  /** Duration of the movie with its fragments, in seconds; null where it is not stated, or there are none. */
  readonly statedSeconds: number | null;
}

/**
 * Reads the boxes of an MP4 or QuickTime file down to its tracks. Throws BrokenMedia for a file without a movie, and an
 * AppError (`BMFF_…`) for one whose boxes are inconsistent, as in a file that is cut short.
 */
export async function readOtherTracks(source: ByteSource, signal: AbortSignal): Promise<OtherTracks> {
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const { boxes } = await walkTopLevelBoxes(source, window, () => undefined);
  const header = boxes.find(({ type }) => type === 'moov');
  const hasFragments = boxes.some(({ type }) => type === 'moof');
  if (header === undefined) {
    throw new BrokenMedia(
      hasFragments
        ? 'is a fragment without its init segment (there is no "moov" box)'
        : 'has no "moov" box, so nothing can play it: its recording was probably cut off before it was closed',
    );
  }
  if (!hasFragments && !boxes.some(({ type }) => type === 'mdat')) {
    throw new BrokenMedia('describes a movie and holds no media (no "mdat" and no "moof" box)');
  }
  const index = boxes.find(({ type }) => type === 'sidx');
  if (index !== undefined) refuseCutShort(await readWholeBox(source.name, window, index, MAX_INDEX_BYTES), source);
  const moov = await readWholeBox(source.name, window, header, MAX_MOVIE_BYTES);
  new SampleCounts(source.sizeBytes).check(moov.bytes, moov.header.offset);
  return tracksOf(moov);
}

/**
 * Refuses a file that is shorter than its segment index says (ISO/IEC 14496-12 §8.16.3), also where it was cut
 * between two boxes.
 */
function refuseCutShort(sidx: Box, { sizeBytes }: ByteSource): void {
  const index = parseSegmentIndex(sidx.bytes.subarray(sidx.header.headerSizeBytes));
  if (index === undefined) throw new BrokenMedia('is damaged: its segment index is shorter than what it counts');
  const end = index.references.reduce(
    (sum, reference) => sum + reference.sizeBytes,
    sidx.endOffset + index.firstOffset,
  );
  if (end > sizeBytes) throw new BrokenMedia(`is cut short: ${end - sizeBytes} bytes are missing at its end`);
}

/** Nouns for tracks that are left out, by handler type. */
const NOUNS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    tmcd: 'a time code track',
    meta: 'a track of timed metadata',
    hint: 'a track of streaming hints',
    clcp: 'a track of closed captions',
  }),
);

function tracksOf(moov: Box): OtherTracks {
  const traks = [...moov.descendants('trak')];
  const tracks = traks.map(parseTrack);
  const chapterTrackIds = chapterTrackIdsIn(tracks);
  const nouns: string[] = [];
  if (traks.some((trak) => ['encv', 'enca', 'drmi', 'drms'].includes(sampleEntryOf(trak)))) {
    throw new BrokenMedia('is encrypted; package it before it is encrypted');
  }
  for (const { id, handlerType } of tracks) {
    if (handlerType === 'vide' || handlerType === 'soun') continue;
    if (id !== null && chapterTrackIds.has(id)) nouns.push('a track of chapter titles');
    else if (!SUBTITLE_HANDLERS.has(handlerType)) {
      nouns.push(NOUNS.get(handlerType) ?? `a track of the kind "${handlerType}"`);
    }
  }
  if (hasCover(moov)) nouns.push('a cover picture');
  const subtitles = subtitleTraksIn(moov).map((trak) => ({
    codecId: sampleEntryOf(trak),
    language: languageOf(trak),
  }));
  return { subtitles, nouns, statedSeconds: statedSecondsOf(moov) };
}

const SUBTITLE_HANDLERS = new Set(['text', 'sbtl', 'subt']);

/** Returns the subtitle tracks in the order of the file, without chapter titles, which have the same form. */
export function subtitleTraksIn(moov: Box): Box[] {
  const traks = [...moov.descendants('trak')];
  const tracks = traks.map(parseTrack);
  const chapterTrackIds = chapterTrackIdsIn(tracks);
  return traks.filter((_, index) => {
    const { id, handlerType } = itemAt(tracks, index);
    return SUBTITLE_HANDLERS.has(handlerType) && !(id !== null && chapterTrackIds.has(id));
  });
}

function chapterTrackIdsIn(tracks: readonly Track[]): ReadonlySet<number> {
  return new Set(tracks.flatMap((track) => track.chapterTrackIds));
}

/** Returns the duration of the movie with its fragments (ISO/IEC 14496-12 §8.8.2), in seconds. */
function statedSecondsOf(moov: Box): number | null {
  const mehd = moov.descendant('mvex', 'mehd');
  const mvhd = moov.descendant('mvhd');
  if (mehd === undefined || mvhd === undefined) return null;
  const timescale = fieldBehindTimes(mvhd);
  const fields = new BoxFields(mehd);
  const duration = fields.uint(fields.versionAndFlags().version === 0 ? 4 : 8);
  return duration === 0 || timescale === 0 ? null : duration / timescale;
}

function sampleEntryOf(trak: Box): string {
  const [entry] = trak.descendant('mdia', 'minf', 'stbl', 'stsd')?.children(8) ?? [];
  return entry?.type ?? '';
}

/**
 * Reads a language of three letters with five bits each (ISO/IEC 14496-12 §8.4.2); smaller values are QuickTime's codes.
 */
function languageOf(trak: Box): string | null {
  const mdhd = trak.descendant('mdia', 'mdhd');
  if (mdhd === undefined) return null;
  const fields = new BoxFields(mdhd);
  const { version } = fields.versionAndFlags();
  fields.skip(version === 1 ? 28 : 16);
  const packed = fields.uint(2);
  if (packed < 0x400) return null;
  return String.fromCharCode(...[10, 5, 0].map((shift) => ((packed >> shift) & 31) + 0x60));
}

function hasCover(moov: Box): boolean {
  const meta = moov.descendant('udta', 'meta');
  for (const ilst of meta?.children(4) ?? []) {
    if (ilst.type === 'ilst' && ilst.descendant('covr') !== undefined) return true;
  }
  return false;
}
