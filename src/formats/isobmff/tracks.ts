import type { Box } from './box.ts';
import { BoxFields } from './box-fields.ts';

/** What kinds of tracks a movie has. */
export interface TrackKinds {
  readonly hasVideo: boolean;
  readonly hasAudio: boolean;
}

/** What is needed of a track to know what it is. */
export interface Track {
  readonly id: number | null;
  /** `vide`, `soun` and others (ISO/IEC 14496-12 §8.4.3). */
  readonly handlerType: string;
  readonly isPicture: boolean;
  /** The tracks that hold this one's chapters: their titles, or a picture for each. */
  readonly chapterTrackIds: readonly number[];
}

/** Formats of single pictures, as sample entries name them. */
const PICTURE_FORMATS = new Set(['jpeg', 'png ', 'tiff', 'gif ']);

/** A track refers to one for the titles of its chapters, and one for their pictures. */
const MAX_CHAPTER_TRACKS = 16;

/** Tells video from pictures that come with audio: a cover, or pictures of chapters. */
export function trackKindsOf(tracks: readonly Track[]): TrackKinds {
  const chapterTrackIds = new Set(tracks.flatMap((track) => track.chapterTrackIds));
  const hasAudio = tracks.some(({ handlerType }) => handlerType === 'soun');
  const hasVideo = tracks.some((track) => {
    if (track.handlerType !== 'vide') return false;
    if (track.id !== null && chapterTrackIds.has(track.id)) return false;
    return !(hasAudio && track.isPicture);
  });
  return { hasVideo, hasAudio };
}

/** Reads what a `trak` box says of itself. */
export function parseTrack(trak: Box): Track {
  return {
    id: trackIdOf(trak),
    handlerType: handlerTypeOf(trak),
    isPicture: holdsOnePicture(trak),
    chapterTrackIds: chapterTrackIdsOf(trak),
  };
}

function trackIdOf(trak: Box): number | null {
  const tkhd = trak.descendant('tkhd');
  if (tkhd === undefined) return null;
  const fields = new BoxFields(tkhd);
  const { version } = fields.versionAndFlags();
  fields.skip(version === 1 ? 16 : 8); // when it was made and changed
  return fields.uint(4);
}

function handlerTypeOf(trak: Box): string {
  const hdlr = trak.descendant('mdia', 'hdlr');
  if (hdlr === undefined) return '';
  const fields = new BoxFields(hdlr);
  fields.skip(8); // version and flags, and QuickTime's component type
  return fields.text(4);
}

function holdsOnePicture(trak: Box): boolean {
  const stbl = trak.descendant('mdia', 'minf', 'stbl');
  const [entry] = stbl?.descendant('stsd')?.children(8) ?? [];
  const stsz = stbl?.descendant('stsz');
  if (entry === undefined || stsz === undefined || !PICTURE_FORMATS.has(entry.type)) return false;
  const fields = new BoxFields(stsz);
  fields.skip(8); // version and flags, and the size that all samples have
  return fields.uint(4) === 1;
}

function chapterTrackIdsOf(trak: Box): number[] {
  const chap = trak.descendant('tref', 'chap');
  if (chap === undefined) return [];
  const fields = new BoxFields(chap);
  const count = Math.floor((chap.header.sizeBytes - chap.header.headerSizeBytes) / 4);
  return Array.from({ length: Math.min(count, MAX_CHAPTER_TRACKS) }, () => fields.uint(4));
}
