import type { Warning } from '#errors/warning.ts';
import type { HlsPlaylist } from './reading/hls-playlist.ts';
import type { MpdDocument } from './reading/mpd-document.ts';

/** Bytes `[offset, offset + length)` of a file. */
export interface ByteRange {
  readonly offset: number;
  readonly length: number;
}

/** An init segment or a fragment as it lies in the folder: a whole file where `range` is null, else a part of one. */
export interface MediaPart {
  readonly path: string;
  readonly range: ByteRange | null;
}

/** One init segment and the fragments that belong to it, in playback order. */
export interface Rendition {
  readonly init: MediaPart;
  readonly fragments: readonly MediaPart[];
}

/** A playlist of the publication as it was read: its text, what it says, and where it says it. */
export type PlaylistDocument = HlsPlaylist | MpdDocument;

/** A streaming publication: what of a folder is signed, what is rewritten, and what is carried through. */
export interface Publication {
  /** At least one. No file or byte range belongs to two of them. */
  readonly renditions: readonly Rendition[];
  readonly playlists: readonly PlaylistDocument[];
  /** Files that are neither media of a rendition nor playlists: copied unchanged. */
  readonly otherPaths: readonly string[];
  /** For the result entry's `warnings`. */
  readonly warnings: readonly Warning[];
}

/** Where the request says the parts of a publication are found: globs on paths relative to the folder. */
export interface PublicationPatterns {
  readonly playlist: string;
  readonly init: string;
  readonly frag: string;
}

/** A key that is equal exactly for equal parts. */
export function partKey({ path, range }: MediaPart): string {
  return range === null ? path : `${path}\0${range.offset}+${range.length}`;
}

/** A part as people are told of it: its path, and its byte range where it has one. */
export function describePart({ path, range }: MediaPart): string {
  return range === null ? path : `${path} (bytes ${range.offset}-${range.offset + range.length - 1})`;
}
