import type { ByteSource } from '#bytes/byte-source.ts';
import type { Box } from '#formats/isobmff/box.ts';
import { BoxFields } from '#formats/isobmff/box-fields.ts';
import { walkFile } from '#formats/isobmff/file-boxes.ts';
import { parseTrack, type Track } from '#formats/isobmff/tracks.ts';
import { readWholeBox } from '#formats/isobmff/whole-box.ts';
import { ReadWindow } from '#formats/read-window.ts';
import { BrokenMedia } from './broken-media.ts';
import { SampleCounts } from './sample-counts.ts';

/** Bound of the `moov` box in memory, in bytes. A day of video has tens of megabytes. */
export const LARGEST_MOVIE_BYTES = 64 * 1024 * 1024;
/** Bound of a segment index in memory, in bytes; it has 65,535 entries at most. */
const LARGEST_INDEX_BYTES = 1024 * 1024;
/** One read of headers fetches so many bytes. */
const WINDOW_SIZE_BYTES = 256 * 1024;

/** What a movie holds beside audio and video. */
export interface OtherTracks {
  /** Subtitles, by the sample entry (`tx3g`, `wvtt`, `stpp`) and their language, in the order of the file. */
  readonly subtitles: readonly { readonly codecId: string; readonly language: string | null }[];
  /** Everything else, as nouns for people. */
  readonly nouns: readonly string[];
  /** How long the movie says it is with its fragments; null where it does not, or has none. */
  readonly statedSeconds: number | null;
}

/**
 * Reads the boxes of an MP4 or QuickTime file down to its tracks. Throws BrokenMedia for a file without a movie, and an
 * AppError (BMFF_…) for one whose boxes do not fit, as of a file that is cut short.
 */
export async function readOtherTracks(source: ByteSource, signal: AbortSignal): Promise<OtherTracks> {
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  const { boxes } = await walkFile(source, window, () => undefined);
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
  if (index !== undefined) refuseCutShort(await readWholeBox(source.name, window, index, LARGEST_INDEX_BYTES), source);
  const moov = await readWholeBox(source.name, window, header, LARGEST_MOVIE_BYTES);
  new SampleCounts(source.sizeBytes).check(moov.bytes, moov.header.offset);
  return tracksOf(moov);
}

/** A segment index says how far the file goes on (ISO/IEC 14496-12 §8.16.3), also where it was cut between two boxes. */
function refuseCutShort(sidx: Box, { sizeBytes }: ByteSource): void {
  const fields = new BoxFields(sidx);
  const { version } = fields.versionAndFlags();
  fields.skip(version === 0 ? 12 : 16);
  let end = sidx.endOffset + fields.uint(version === 0 ? 4 : 8);
  fields.skip(2);
  const count = fields.uint(2);
  for (let index = 0; index < count; index += 1) {
    end += fields.uint(4) & 0x7fffffff;
    fields.skip(8);
  }
  if (end > sizeBytes) throw new BrokenMedia(`is cut short: ${end - sizeBytes} bytes are missing at its end`);
}

/** What kinds of tracks are called that are left out. */
const NOUNS: Readonly<Record<string, string>> = {
  tmcd: 'a time code track',
  meta: 'a track of timed metadata',
  hint: 'a track of streaming hints',
  clcp: 'a track of closed captions',
};

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
      nouns.push(NOUNS[handlerType] ?? `a track of the kind "${handlerType}"`);
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

/** The tracks of subtitles, in the order of the file; titles of chapters, which have the same form, are none. */
export function subtitleTraksIn(moov: Box): Box[] {
  const traks = [...moov.descendants('trak')];
  const tracks = traks.map(parseTrack);
  const chapterTrackIds = chapterTrackIdsIn(tracks);
  return traks.filter((_, index) => {
    const { id, handlerType } = tracks[index] as Track;
    return SUBTITLE_HANDLERS.has(handlerType) && !(id !== null && chapterTrackIds.has(id));
  });
}

function chapterTrackIdsIn(tracks: readonly Track[]): ReadonlySet<number> {
  return new Set(tracks.flatMap((track) => track.chapterTrackIds));
}

/** The length of the movie with its fragments (ISO/IEC 14496-12 §8.8.2), on the timescale of the movie. */
function statedSecondsOf(moov: Box): number | null {
  const mehd = moov.descendant('mvex', 'mehd');
  const mvhd = moov.descendant('mvhd');
  if (mehd === undefined || mvhd === undefined) return null;
  const times = new BoxFields(mvhd);
  times.skip(times.versionAndFlags().version === 0 ? 8 : 16);
  const timescale = times.uint(4);
  const fields = new BoxFields(mehd);
  const duration = fields.uint(fields.versionAndFlags().version === 0 ? 4 : 8);
  return duration === 0 || timescale === 0 ? null : duration / timescale;
}

function sampleEntryOf(trak: Box): string {
  const [entry] = trak.descendant('mdia', 'minf', 'stbl', 'stsd')?.children(8) ?? [];
  return entry?.type ?? '';
}

/** Three letters of five bits each (ISO/IEC 14496-12 §8.4.2); smaller values are QuickTime's own numbers. */
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
