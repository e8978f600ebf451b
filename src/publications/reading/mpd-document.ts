import type { MediaPart } from '../publication.ts';
import type { SegmentIndex } from './sidx.ts';
import type { XmlElement } from './xml-element.ts';

/** A DASH manifest (ISO/IEC 23009-1) with the segments of every representation written out. */
export interface MpdDocument {
  readonly kind: 'mpd';
  readonly path: string;
  readonly text: string;
  readonly root: XmlElement;
  readonly representations: readonly MpdRepresentation[];
}

/** A representation in one period. */
export interface MpdRepresentation {
  readonly line: number;
  /** From the MPD element down to the Representation: what it inherits from, outermost first. */
  readonly lineage: readonly [
    mpd: XmlElement,
    period: XmlElement,
    adaptationSet: XmlElement,
    representation: XmlElement,
  ];
  readonly addressing: 'template' | 'list' | 'base' | 'none';
  /** Null where it has none, as plain text and pictures do. */
  readonly init: MediaPart | null;
  readonly segments: readonly MpdSegment[];
  /** The file that it is as a whole, where it is one without segments, such as subtitles. */
  readonly path?: string;
  /** The segment index that the segments were read from, where that is how they are addressed. */
  readonly index?: SegmentIndex;
}

export interface MpdSegment {
  readonly part: MediaPart;
  readonly durationSeconds: number | null;
}
