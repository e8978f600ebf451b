import type { ByteRange, MediaPart } from '../media-part.ts';
import type { Base, FolderIndex } from './folder-index.ts';
import type { HlsLine } from './hls-lines.ts';
import type { PlaylistFinding } from './playlist-finding.ts';
import type { SegmentIndex } from './sidx.ts';
import type { LineIndex, XmlElement } from './xml-element.ts';

/** A playlist as it was read: its text, its content, and the lines that say it. Lines count from one. */
export type PlaylistDocument = HlsPlaylist | MpdDocument;

/** An HLS playlist (RFC 8216bis) as far as signing needs it. Lines count from one. */
export type HlsPlaylist = HlsMultivariant | HlsMedia;

/** A text that was read as a playlist. */
interface PlaylistFile {
  readonly path: string;
  readonly text: string;
  /** The folder that it was read from. */
  readonly index: FolderIndex;
  /** Lines that are not in the strict grammar, or that players read differently. */
  readonly findings: readonly PlaylistFinding[];
}

interface HlsFile extends PlaylistFile {
  /** The base of its addresses. */
  readonly base: Base;
  /** Its tags and addresses, with variables written out. */
  readonly lines: readonly HlsLine[];
}

export interface HlsMultivariant extends HlsFile {
  readonly kind: 'hls-multivariant';
  /** Every media playlist it names, by variant, rendition or I-frame stream. */
  readonly references: readonly PlaylistReference[];
}

export interface HlsReference {
  readonly uri: string;
  readonly line: number;
}

export interface PlaylistReference extends HlsReference {
  /** The tag that says what it is: the one above the address of a variant, or the one that holds the address. */
  readonly tag: HlsLine | null;
  /** True for variants, sound and pictures; false for subtitles, images and I-frames. */
  readonly isOfMedia: boolean;
  /** True for key frames (EXT-X-I-FRAME-STREAM-INF). */
  readonly isOfKeyFrames: boolean;
  readonly isVariant: boolean;
}

export interface HlsMedia extends HlsFile {
  readonly kind: 'hls-media';
  /** True when its segments are single frames inside other playlists' fragments (EXT-X-I-FRAMES-ONLY). */
  readonly iFramesOnly: boolean;
  /** In playback order; gaps are left out. */
  readonly segments: readonly HlsSegment[];
  /** Segments that are not there to be played (EXT-X-GAP); their files may be missing. */
  readonly gaps: readonly HlsSegment[];
}

export interface HlsSegment extends HlsReference {
  /** Its position in the playlist, where gaps are not counted. */
  readonly position: number;
  /** The sum of the durations before it. */
  readonly startSeconds: number;
  readonly durationSeconds: number;
  /** Half of the last digit of the stated duration. */
  readonly roundingSeconds: number;
  /** The number of the last discontinuity above it (EXT-X-DISCONTINUITY-SEQUENCE, EXT-X-DISCONTINUITY). */
  readonly section: number;
  /** The durations of the gaps between it and the segment before. */
  readonly gapSeconds: number;
  /** The time of day that it states, in seconds (EXT-X-PROGRAM-DATE-TIME); null where it does not. */
  readonly dateSeconds: number | null;
  /** The attributes of the EXT-X-KEY that it is encrypted with; null where it is not. */
  readonly key: string | null;
  readonly range: ByteRange | null;
  /** The line of the tag that states the range. */
  readonly rangeLine: number | null;
  readonly map: HlsMap | null;
}

/** An EXT-X-MAP tag; the same object stands at every segment up to the next tag. */
export interface HlsMap extends HlsReference {
  readonly range: ByteRange | null;
}

/** A DASH manifest (ISO/IEC 23009-1) with the segments of every representation written out. */
export interface MpdDocument extends PlaylistFile {
  readonly kind: 'mpd';
  readonly lineIndex: LineIndex;
  readonly root: XmlElement;
  readonly periods: readonly MpdPeriod[];
  readonly representations: readonly MpdRepresentation[];
}

/** A period with its bounds in seconds; undefined where neither it, the periods beside it nor the MPD say them. */
export interface MpdPeriod {
  readonly element: XmlElement;
  readonly line: number;
  readonly startSeconds: number | undefined;
  readonly durationSeconds: number | undefined;
  /** Half of the last digit of what says the duration. */
  readonly roundingSeconds: number;
  /** The end by the start of the next period or, for the last one, by the duration of the MPD. */
  readonly followedAtSeconds: number | undefined;
}

/** A representation in one period. */
export interface MpdRepresentation {
  /** The path of the MPD. */
  readonly playlist: string;
  readonly line: number;
  /** From the MPD element down to the Representation: what it inherits from, outermost first. */
  readonly lineage: readonly [
    mpd: XmlElement,
    period: XmlElement,
    adaptationSet: XmlElement,
    representation: XmlElement,
  ];
  /** The base of references in the elements around it. */
  readonly outerBase: Base;
  readonly addressing: 'template' | 'list' | 'base' | 'none';
  /** Undefined where the MPD does not say how long the period is. */
  readonly periodSeconds: number | undefined;
  /** Null where it has none, as plain text and pictures do. */
  readonly init: MediaPart | null;
  readonly segments: readonly MpdSegment[];
  /** Files beside its segments that some players count as segments too. */
  readonly adjacent: readonly AdjacentFile[];
  /** The media times that its period shows. */
  readonly window: MediaWindow;
  /** True where a timeline or an index, and no common duration, says when each segment begins and how long it is. */
  readonly isTimed: boolean;
  /** The file that it is as a whole, where it is one without segments, such as subtitles. */
  readonly path?: string;
  /** The segment index that the segments were read from, where that is how they are addressed. */
  readonly index?: SegmentIndex;
}

/** A file of the folder by the address that a template makes for a number or time before its first segment, or behind its last one. */
export interface AdjacentFile {
  readonly path: string;
  /** Segments behind the last one; less than 0 before the first; not a number where it lies beside none of the places that a timeline has. */
  readonly distance: number;
}

/** The part of the media timeline that a period of an MPD shows, in seconds (ISO/IEC 23009-1 §5.3.2). */
export interface MediaWindow {
  readonly startSeconds: number;
  /** Null where nothing says when it ends. */
  readonly endSeconds: number | null;
}

export interface MpdSegment {
  readonly part: MediaPart;
  /** Its start on the media timeline; null where only its number or place in a list says it. */
  readonly mediaSeconds: number | null;
  readonly durationSeconds: number | null;
}
