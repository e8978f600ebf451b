import type { MediaLayout } from '../format-handler.ts';
import { type Box, BoxFields } from './boxes.ts';
import { fieldBehindTimes, handlerTypeIn } from './track-boxes.ts';

/** Kinds of tracks in a movie. */
export interface TrackKinds {
  readonly hasVideo: boolean;
  readonly hasAudio: boolean;
}

/** Properties of a track that tell its kind. */
export interface Track {
  readonly id: number | null;
  /** `vide`, `soun` and others (ISO/IEC 14496-12 §8.4.3). */
  readonly handlerType: string;
  readonly isPicture: boolean;
  /** Ids of the tracks with this one's chapters: their titles, or a picture for each. */
  readonly chapterTrackIds: readonly number[];
}

type Kind = Pick<MediaLayout, 'mediaType' | 'extensions'>;

const QUICKTIME: Kind = { mediaType: 'video/quicktime', extensions: ['mov', 'qt'] };
const VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['mp4', 'm4v', 'mp4v', 'f4v', 'cmfv', 'ismv'] };
const APPLE_VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['m4v', 'mp4'] };
const AUDIO: Kind = { mediaType: 'audio/mp4', extensions: ['m4a', 'mp4', 'm4v', 'm4b', 'm4r', 'f4a', 'cmfa', 'isma'] };

// C2PA readers know 3GPP files, which are a profile of MP4, by the media type of MP4 only.
const MOBILE_VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['3gp', '3gpp', 'mp4'] };
const MOBILE_AUDIO: Kind = { mediaType: 'audio/mp4', extensions: ['3gp', '3gpp', 'mp4', 'm4a'] };
const MOBILE_2_VIDEO: Kind = { mediaType: 'video/mp4', extensions: ['3g2', '3gp2', '3gpp2', 'mp4'] };
const MOBILE_2_AUDIO: Kind = { mediaType: 'audio/mp4', extensions: ['3g2', '3gp2', '3gpp2', 'mp4', 'm4a'] };
/** Types of sample entries for single pictures. */
const PICTURE_FORMATS = new Set(['jpeg', 'png ', 'tiff', 'gif ']);
/** Largest number of chapter tracks read; valid files have one for titles and one for pictures. */
const MAX_CHAPTER_TRACKS = 16;

/** Returns the kinds of tracks. A cover or the pictures of chapters beside audio do not count as video. */
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

/**
 * Returns media type and extensions of a file, given its major brand (null in old QuickTime files) and its
 * kinds of tracks.
 */
export function kindOf(majorBrand: string | null, { hasVideo, hasAudio }: TrackKinds): Kind {
  const isAudio = hasAudio && !hasVideo;
  if (majorBrand === null || majorBrand === 'qt  ') return QUICKTIME;
  if (/^3g2/.test(majorBrand)) return isAudio ? MOBILE_2_AUDIO : MOBILE_2_VIDEO;
  if (/^3g/.test(majorBrand)) return isAudio ? MOBILE_AUDIO : MOBILE_VIDEO;
  if (isAudio) return AUDIO;
  return /^M4V/.test(majorBrand) ? APPLE_VIDEO : VIDEO;
}

/** Returns the media type of a still picture (ISO/IEC 23008-12), given its major brand. */
export function pictureTypeOf(majorBrand: string | null): string {
  if (/^avi[fs]$/.test(majorBrand ?? '')) return 'image/avif';
  return /^he[iv][cx]$/.test(majorBrand ?? '') ? 'image/heic' : 'image/heif';
}

/** Parses a `trak` box. Throws `BMFF_BOX_MALFORMED`, and as `Box.children` does. */
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
  return tkhd === undefined ? null : fieldBehindTimes(tkhd);
}

function handlerTypeOf(trak: Box): string {
  const hdlr = trak.descendant('mdia', 'hdlr');
  return hdlr === undefined ? '' : handlerTypeIn(hdlr);
}

function holdsOnePicture(trak: Box): boolean {
  const stbl = trak.descendant('mdia', 'minf', 'stbl');
  const [entry] = stbl?.descendant('stsd')?.children(8) ?? [];
  const stsz = stbl?.descendant('stsz');
  if (entry === undefined || stsz === undefined) return false;
  if (!PICTURE_FORMATS.has(entry.type) && !isPictureOfMpeg4(entry)) return false;
  const fields = new BoxFields(stsz);
  fields.skip(8); // version and flags, and sample_size
  return fields.uint(4) === 1;
}

/** Bytes of a sample entry that are searched for its codec, which stands near its start. */
const MAX_ENTRY_BYTES = 512;

/**
 * Bytes in hexadecimal up to the object type of JPEG or PNG in an `esds` box: descriptors 3 and 4, with sizes of one byte or
 * four (ISO/IEC 14496-1 §7.2.6.6).
 */
const MPEG_4_PICTURE = /^(?:..)*?6573647300000000(?:03(?:808080)?..)......(?:04(?:808080)?..)6[cd]/;

/** Returns whether a sample entry is JPEG or PNG by MPEG-4's way of naming codecs. */
function isPictureOfMpeg4({ type, bytes }: Box): boolean {
  return type === 'mp4v' && MPEG_4_PICTURE.test(bytes.toString('hex', 0, MAX_ENTRY_BYTES));
}

function chapterTrackIdsOf(trak: Box): number[] {
  const chap = trak.descendant('tref', 'chap');
  if (chap === undefined) return [];
  const fields = new BoxFields(chap);
  const count = Math.floor((chap.header.sizeBytes - chap.header.headerSizeBytes) / 4);
  return Array.from({ length: Math.min(count, MAX_CHAPTER_TRACKS) }, () => fields.uint(4));
}
