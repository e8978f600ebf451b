import { describePart } from '../publication.ts';
import type { FindingKind, PartFinding } from './publication-verdict.ts';

/** Files, or places, that a description names; beyond, they are counted. */
const NAMED_MAX_COUNT = 5;

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

/** A finding as the end of a sentence; at most `NAMED_MAX_COUNT` files are named. */
export function describeFinding(finding: PartFinding): string {
  return PHRASES[finding.kind](finding);
}

function fragments({ count }: PartFinding): string {
  return count === 1 ? '1 fragment is' : `${count} fragments are`;
}

function named({ parts, locations, count }: PartFinding): string {
  const names = [...parts.map((part) => `"${describePart(part)}"`), ...locations.map((at) => `position ${at}`)];
  const shown = names.slice(0, NAMED_MAX_COUNT);
  return `${shown.join(', ')}${count > shown.length ? ` and ${count - shown.length} more` : ''}`;
}
