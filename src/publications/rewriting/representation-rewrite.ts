import type { MpdDocument, MpdRepresentation } from '../reading/mpd-document.ts';
import type { SignedPart } from '../signing/signed-part.ts';

/** What rewriting one representation needs. */
export interface RepresentationRewrite {
  readonly document: MpdDocument;
  readonly representation: MpdRepresentation;
  readonly init: SignedPart;
  readonly fragments: readonly SignedPart[];
  /** The reference, relative to where the representation's references start, that leads to a path of the output. */
  referenceTo(path: string): string;
}
