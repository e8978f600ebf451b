import { type Warning, warning } from '#errors/warning.ts';
import { describePart, type MediaPart } from '../media-part.ts';
import type { ReadableRendition } from './official-readings.ts';
import type { ReadManifest, ReadRendition } from './verify-parts.ts';

/** Kinds of findings about a part, or a rendition, of a signed publication. */
export type FindingKind =
  /** The init segment is another one than was signed. */
  | 'init-altered'
  /** A fragment is bound to the rendition, and its bytes are other ones. */
  | 'altered'
  /** A fragment that was signed for the rendition is not there. */
  | 'missing'
  /** A fragment does not belong to the rendition: it is unsigned, of another rendition or publication, or a duplicate. */
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
  /** The number of parts that it applies to. */
  readonly count: number;
  /** The first of those that are there, at most `MAX_EXAMPLES`. */
  readonly parts: readonly MediaPart[];
  /** Positions of the first missing fragments, counted from zero; at most `MAX_EXAMPLES`. */
  readonly locations: readonly number[];
  /** Why it is so, where that is known. */
  readonly problem?: string;
}

/** A rendition of which all parts were read. */
export type ReadParts = ReadableRendition & { readonly read: ReadRendition };

/** The differences between a publication and what was signed. */
export interface PublicationVerdict {
  /** In the order of the first renditions that carry them. */
  readonly manifests: readonly ReadManifest[];
  readonly renditions: readonly ReadParts[];
  readonly findings: readonly PartFinding[];
}

/** Parts, or positions, that one finding lists. */
export const MAX_EXAMPLES = 10;

/** Files, or positions, that a description names; more are counted. */
const MAX_NAMED_PARTS = 5;

const PHRASES: Readonly<Record<FindingKind, (finding: PartFinding) => string>> = {
  'init-altered': () => 'the init segment is not the one that was signed',
  altered: (finding) => `${fragments(finding)} not as signed: ${named(finding)}`,
  missing: (finding) => `${fragments(finding)} missing, at ${named(finding)} counted from zero`,
  added: (finding) => `${fragments(finding)} not part of what was signed: ${named(finding)}`,
  moved: (finding) => `${fragments(finding)} not where signed in playback order: ${named(finding)}`,
  'rendition-missing': ({ count }) =>
    `${count} signed ${count === 1 ? 'rendition is' : 'renditions are'} missing, or not chosen`,
  unsigned: () => 'the init segment has no manifest',
  unjudged: ({ problem = 'it is not known how its manifest binds it' }) => problem,
};

/** Describes a finding as the end of a sentence; at most `MAX_NAMED_PARTS` files are named. */
export function describeFinding(finding: PartFinding): string {
  return PHRASES[finding.kind](finding);
}

function fragments({ count }: PartFinding): string {
  return count === 1 ? '1 fragment is' : `${count} fragments are`;
}

function named({ parts, locations, count }: PartFinding): string {
  const names = [...parts.map((part) => `"${describePart(part)}"`), ...locations.map((at) => `position ${at}`)];
  const shown = names.slice(0, MAX_NAMED_PARTS);
  return `${shown.join(', ')}${count > shown.length ? ` and ${count - shown.length} more` : ''}`;
}

/** Findings that are reported one by one; more are counted. */
const MAX_REPORTED_FINDINGS = 10;
/** Other manifests that the warning about them names by their init segments. */
const MAX_NAMED_INITS = 5;

/** Returns warnings about a publication that is not as it was signed, or that cannot be verified. */
export function verdictWarnings(title: string, { manifests, renditions, findings }: PublicationVerdict): Warning[] {
  if (manifests.length === 0) {
    return [warning('INGREDIENT_UNREADABLE', { title, problem: 'its boxes of C2PA are malformed' })];
  }
  const told = findings.slice(0, MAX_REPORTED_FINDINGS).map((finding) => findingWarning(title, finding));
  const count = findings.length - told.length;
  const more = count > 0 ? [warning('PUBLICATION_FINDINGS_OMITTED', { title, count })] : [];
  if (manifests.length === 1) return [...told, ...more];
  const inits = manifests.slice(1, MAX_NAMED_INITS + 1).flatMap((_manifest, at) => {
    const carrier = renditions.find(({ read }) => read.manifest === at + 1);
    return carrier === undefined ? [] : describePart(carrier.listed.init);
  });
  const differ = warning('PUBLICATION_MANIFESTS_DIFFER', { title, manifestCount: manifests.length, inits });
  return [...told, ...more, differ];
}

function findingWarning(title: string, finding: PartFinding): Warning {
  const { kind, init, parts, locations, count } = finding;
  return warning(kind === 'unjudged' ? 'PUBLICATION_NOT_VERIFIED' : 'PUBLICATION_ALTERED', {
    title,
    finding: kind,
    init: init === null ? null : describePart(init),
    parts: parts.map(describePart),
    locations,
    count,
    problem: describeFinding(finding),
  });
}
