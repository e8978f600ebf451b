import type { Warning } from '#errors/warning.ts';
import type { MediaPart, PlaylistDocument } from '../publication.ts';

/** A folder that turned out to be a publication already. */
export interface ExistingPublication {
  readonly playlists: readonly PlaylistDocument[];
  readonly renditions: readonly ExistingRendition[];
  /** Renditions that the request's patterns do not choose. */
  readonly unchosen: readonly ExistingRendition[];
  /**
   * `cmaf`: every rendition has an init segment and fragments of one moof and one mdat, each a file: as it would be
   * packaged here. Else what its segments are, so that they have to be made anew.
   */
  readonly segments: SegmentKind;
  /** Its files and what goes with them, where it stays as it is; and warnings of what does not. */
  readonly copied: { readonly paths: ReadonlySet<string>; readonly warnings: readonly Warning[] };
  /** What is doubtful about its playlists. */
  readonly warnings: readonly Warning[];
}

export type SegmentKind =
  | 'cmaf'
  | 'byte-ranges'
  | 'chunked'
  | 'transport-stream'
  | 'packed-audio'
  /** Fragmented MP4 of which every segment has the init segment in it. */
  | 'self-initialising';

/** One rendition of it, by one playlist. */
export interface ExistingRendition {
  /** The playlist that names it, and for an MPD the representation's number: a name for people, and unique. */
  readonly name: string;
  readonly playlist: string;
  /** The init segment first, where there is one; then the segments in playback order. */
  readonly parts: readonly MediaPart[];
  readonly hasInit: boolean;
  readonly isText: boolean;
  /** How long its segments are together, as the playlist says; null where it does not. */
  readonly durationSeconds: number | null;
  /** What the multivariant playlist or MPD says of it. */
  readonly language: string | null;
  readonly label: string | null;
  readonly role: string | null;
  /** Whether players choose it where the viewer has not. */
  readonly isDefault: boolean;
}
