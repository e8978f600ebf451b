import type { MediaPart } from '../publication.ts';

/** A part of a publication as it stands in the output. */
export interface SignedPart {
  readonly source: MediaPart;
  /** Where it lies in the output folder. */
  readonly path: string;
  /** What signing added, in bytes; negative where an earlier, larger Merkle box went. */
  readonly addedBytes: number;
  /** Size of its Merkle box in the output; 0 for init segments. */
  readonly merkleBoxSizeBytes: number;
}

/** All parts by `partKey` of their source. */
export type SignedParts = ReadonlyMap<string, SignedPart>;
