import { AppError } from '#errors/app-error.ts';

/** Bounds of one publication. Legitimate publications of a day's media stay well inside them. */

/** Size of one playlist or MPD in bytes. */
export const PLAYLIST_MAX_BYTES = 32 * 1024 * 1024;
/** Lines of one playlist or MPD; 100,000 are legitimate. A parsed line of HLS takes about a kilobyte of memory. */
export const PLAYLIST_MAX_LINES = 250_000;
/** Tags of one MPD; a parsed element takes about 1.3 kilobytes of memory. */
export const MPD_MAX_TAGS = 200_000;
/** Playlists and MPDs of one publication. */
export const PLAYLISTS_MAX_COUNT = 2_000;
/** Characters of one line of an HLS playlist. */
export const PLAYLIST_LINE_MAX_LENGTH = 65_536;
/** Levels of elements in an MPD; the schema needs about ten. */
export const MPD_MAX_DEPTH = 32;
/** Representations of one MPD, counted once per period. */
export const REPRESENTATIONS_MAX_COUNT = 20_000;
/** Init segments of one publication, each a Merkle map of its own in the manifest. */
export const RENDITIONS_MAX_COUNT = 500;
/** Fragments that all playlists together may name; the same fragment named twice counts twice. */
export const STATED_FRAGMENTS_MAX_COUNT = 400_000;
/** Bytes of all sidx boxes of one file together, each read once: as much as 400,000 references take, and some. */
export const SIDX_MAX_BYTES = 8 * 1024 * 1024;
/** How deep sidx boxes may refer to further ones. */
export const SIDX_MAX_DEPTH = 4;
/** Sidx boxes of one file. */
export const SIDX_MAX_COUNT = 10_000;
/** Segments that the timelines and durations of one MPD may stand for, whether there are such files or not. */
export const ADDRESSES_MAX_COUNT = 4_000_000;
/** Files that one MPD may name without there being any: live timelines repeat as often as there are files. */
export const MISSING_ADDRESSES_MAX_COUNT = 100_000;
/** Where so many segments in a row are missing that may be, a timeline has come to its end. */
export const MISSING_IN_A_ROW_MAX_COUNT = 100;
/** Characters of one address in a playlist or MPD, what it is relative to included; paths of files have at most 4,096 bytes. */
export const ADDRESS_MAX_LENGTH = 16_384;
/** Playlists that are read because no pattern claims them, each time that one names it. */
export const UNCLAIMED_READS_MAX_COUNT = 10_000;

/** Refuses a publication that passes one of its bounds. */
export function refuseBeyond(what: string, count: number, limit: number): void {
  if (count > limit) throw new AppError('PUBLICATION_TOO_LARGE', { what, count, limit });
}
