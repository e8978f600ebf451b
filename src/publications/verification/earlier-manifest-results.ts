import type { FragmentReading } from '#provenance/official-reader.ts';
import type { ValidationResults } from '#provenance/validation-report.ts';
import {
  hasCode,
  isAbout,
  MATCH,
  MISMATCH,
  withIncomplete,
  withMatch,
  withMismatch,
  without,
} from './binding-results.ts';
import { OfficialReadings, type OfficialTask, type ReadableRendition } from './official-readings.ts';
import { describeFinding, type FindingKind, type PublicationVerdict } from './publication-verdict.ts';
import type { StoredBinding } from './stored-binding.ts';

/** The publication that the official reader reads parts of. */
type ReadParts = PublicationVerdict & Omit<OfficialTask, 'sampleSize' | 'maxReadings'>;

/** Renditions of which the reader is given the first fragment and the last; a read takes some ten milliseconds. */
const MAX_SAMPLED_RENDITIONS = 16;
/** Fragments that the reader is given where our own pass cannot verify how they are bound. */
const MAX_READER_FRAGMENTS = 1000;

/**
 * Findings that invalidate a manifest. A rendition may be left out by the request's own patterns, unless
 * one stands there without a manifest.
 */
const ALTERATIONS: ReadonlySet<FindingKind> = new Set(['init-altered', 'altered', 'missing', 'added', 'moved']);

/**
 * Returns the official reader's results for a manifest and the parts under it: of a part that was altered where there
 * is one, else of a sample. A part that is too large for the reader is put in as our own pass found it, by the same code.
 * A code of this service says that a part is missing or elsewhere, which the reader cannot see. Null where it
 * cannot read any.
 */
export async function resultsOfEarlierManifest(number: number, parts: ReadParts): Promise<ValidationResults | null> {
  const { manifests, findings } = parts;
  const hasUnsigned = findings.some(({ kind }) => kind === 'unsigned');
  const alterations = findings.filter(
    ({ kind, manifest }) =>
      manifest === number && (ALTERATIONS.has(kind) || (kind === 'rendition-missing' && hasUnsigned)),
  );
  const carriers = parts.renditions.filter(({ read }) => read?.manifest === number);
  const binding = manifests[number]?.binding ?? null;
  const official = new OfficialReadings(manifests, { ...parts, sampleSize: 2, maxReadings: MAX_READER_FRAGMENTS });
  const altered = new Set(alterations.map(({ init }) => init));
  const ranked = [true, false].flatMap((is) => carriers.filter(({ listed }) => altered.has(listed.init) === is));
  // The reader has to know all of them where our own pass cannot verify how they are bound.
  const sampled = binding === null ? ranked : ranked.slice(0, MAX_SAMPLED_RENDITIONS);
  for (const rendition of sampled) await official.add(0, rendition);
  const read = official.readings.flatMap(({ reading }) => resultsIn(reading));
  const [worst] = read.toSorted((first, second) => rankOf(second) - rankOf(first));
  const results = worst ?? (await resultsOfStandIn(official, carriers, binding));
  if (results?.activeManifest === undefined) return results;
  if (hasCode(results.activeManifest.failure, MISMATCH)) return results;
  const found = alterations.find(({ kind }) => kind === 'altered' || kind === 'init-altered');
  if (found !== undefined) return withMismatch(results, binding, describeFinding(found));
  const [incomplete] = alterations;
  if (incomplete !== undefined) return withIncomplete(results, describeFinding(incomplete));
  if (binding !== null) {
    return isAbout(binding, results) ? results : withMismatch(results, binding, 'the binding is ambiguous');
  }
  const count = carriers.reduce((sum, { listed }) => sum + listed.present.fragments.length, 0);
  const areAllMatches = read.length === count && read.every((each) => hasCode(each.activeManifest?.success, MATCH));
  return areAllMatches ? results : without(results, MATCH);
}

/** Returns the results for the manifest alone, when all parts are too large. Our own pass decides whether they are bound. */
async function resultsOfStandIn(
  official: OfficialReadings,
  [carrier]: readonly ReadableRendition[],
  binding: StoredBinding | null,
): Promise<ValidationResults | null> {
  const reading = carrier === undefined ? null : await official.readStandIn(carrier.listed.init);
  const [results] = reading === null ? [] : resultsIn(reading);
  if (results === undefined) return null;
  return binding === null ? without(results, MISMATCH) : withMatch(results, binding);
}

function resultsIn(reading: FragmentReading): ValidationResults[] {
  return 'problem' in reading || reading.validation_results === undefined ? [] : [reading.validation_results];
}

/** Ranks results by their failures; a mismatch of the binding comes before all others. */
function rankOf({ activeManifest }: ValidationResults): number {
  const { failure = [] } = activeManifest ?? {};
  return hasCode(failure, MISMATCH) ? Number.POSITIVE_INFINITY : failure.length;
}
