import type { MediaPart } from '../publication.ts';
import type { StoredBinding } from './stored-binding.ts';

/** What can be found about a part, or a rendition, of a signed publication. */
export type FindingKind =
  /** The init segment is another one than was signed. */
  | 'init-altered'
  /** A fragment is bound to the rendition, and its bytes are other ones. */
  | 'altered'
  /** A fragment that was signed for the rendition is not there. */
  | 'missing'
  /** A fragment has no place in the rendition: it is unsigned, of another rendition or publication, or there twice. */
  | 'added'
  /** A fragment is not where it was in playback order. */
  | 'moved'
  /** A whole rendition that was signed is not there. */
  | 'rendition-missing'
  /** The init segment carries no manifest, and others of the publication do. */
  | 'unsigned'
  /** The manifest binds the rendition in a way that is not known here. */
  | 'unjudged';

/** One kind of finding about one rendition. */
export interface PartFinding {
  readonly kind: FindingKind;
  /** Its number in `PublicationVerdict.manifests`; null where the rendition carries none. */
  readonly manifest: number | null;
  /** The init segment; null where the rendition is not there. */
  readonly init: MediaPart | null;
  /** How many parts it is true of. */
  readonly count: number;
  /** The first of those that are there, at most `EXAMPLES_MAX_COUNT`. */
  readonly parts: readonly MediaPart[];
  /** The places that the first of those that are missing had, counted from zero; at most `EXAMPLES_MAX_COUNT`. */
  readonly locations: readonly number[];
  /** Why it is so, where that is known. */
  readonly problem?: string;
}

/** A manifest store that init segments carry. */
export interface VerifiedManifest {
  readonly store: Buffer;
  /** What it binds; null where that cannot be judged here. */
  readonly binding: StoredBinding | null;
  /** The renditions that carry it, by number. */
  readonly renditions: readonly number[];
}

/** What became of a signed publication since it was signed. */
export interface PublicationVerdict {
  /** In the order of the first renditions that carry them. */
  readonly manifests: readonly VerifiedManifest[];
  readonly findings: readonly PartFinding[];
}

/** Parts, or places, that one finding lists. */
export const EXAMPLES_MAX_COUNT = 10;
