import { AppError } from '#errors/app-error.ts';

/** Bounds of one publication. Legitimate publications of a day's media stay well inside them. */

/** Size of one playlist or MPD in bytes. */
export const MAX_PLAYLIST_BYTES = 32 * 1024 * 1024;
/**
 * Bytes of all playlists that one operation reads, and keeps in memory; 400,000 fragments take about 100 MB. They are there twice
 * where a folder over HTTP is found by its playlists.
 */
export const MAX_PLAYLISTS_BYTES = 256 * 1024 * 1024;
/** Size of a file of text in bytes; subtitles of a film have some hundred kilobytes. A larger one counts as media. */
export const MAX_TEXT_BYTES = 4 * 1024 * 1024;
/** Lines of one playlist or MPD; 100,000 are legitimate. A parsed line of HLS takes about a kilobyte of memory. */
export const MAX_PLAYLIST_LINES = 250_000;
/** Tags of one MPD; a parsed element takes about 1.3 kilobytes of memory. */
export const MAX_MPD_TAGS = 200_000;
/** Playlists and MPDs of one publication. */
export const MAX_PLAYLISTS = 2_000;
/** Characters of one line of an HLS playlist. */
export const MAX_PLAYLIST_LINE_LENGTH = 65_536;
/** Levels of elements in an MPD; the schema needs about ten. */
export const MAX_MPD_DEPTH = 32;
/** Representations of one MPD, counted once per period. */
export const MAX_REPRESENTATIONS = 20_000;
/** Init segments of one publication, each a Merkle map of its own in the manifest. */
export const MAX_RENDITIONS = 500;
/** Fragments that all playlists together may name; the same fragment named twice counts twice. */
export const MAX_LISTED_FRAGMENTS = 400_000;
/** Bytes of all sidx boxes of one file together, each read once: as much as 400,000 references take, and some. */
export const MAX_SIDX_BYTES = 8 * 1024 * 1024;
/** Levels of sidx boxes that refer to further ones. */
export const MAX_SIDX_DEPTH = 4;
/** Sidx boxes of one file. */
export const MAX_SIDX_BOXES = 10_000;
/** Segments that the timelines and durations of one MPD may stand for, whether there are such files or not. */
export const MAX_ADDRESSES = 4_000_000;
/** Files that one MPD may name without there being any: live timelines repeat as often as there are files. */
export const MAX_MISSING_ADDRESSES = 100_000;
/** Optional segments in a row that are missing before a timeline counts as finished. */
export const MAX_MISSING_IN_A_ROW = 100;
/** Characters of one address in a playlist or MPD, what it is relative to included; paths of files have at most 4,096 bytes. */
export const MAX_ADDRESS_LENGTH = 16_384;
/** Playlists that are read because no pattern matches them, each time that one names it. */
export const MAX_UNLISTED_PLAYLIST_READS = 10_000;

/** Number of paths whose comparison with a template takes as long as the search for one file that is missing. */
export const PATHS_PER_ADDRESS = 100;

/** Refuses a publication that passes one of its bounds. Throws `PUBLICATION_TOO_LARGE`. */
export function refuseBeyond(what: string, count: number, limit: number): void {
  if (count > limit) throw new AppError('PUBLICATION_TOO_LARGE', { what, count, limit });
}

/** Refuses a playlist that passes one of its bounds. Throws `PLAYLIST_TOO_LARGE`. */
export function refuseLarger(playlist: string, what: string, count: number, limit: number): void {
  if (count > limit) throw new AppError('PLAYLIST_TOO_LARGE', { playlist, what, count, limit });
}
