import type { SourceFolder } from '#bytes/source-folder.ts';
import { itemAt } from '#errors/assert.ts';
import type { Rendition } from '../media-part.ts';
import {
  type FindingKind,
  MAX_EXAMPLES,
  type PartFinding,
  type PublicationVerdict,
  type ReadParts,
} from './publication-verdict.ts';
import type { StoredMap } from './stored-binding.ts';
import { PartsVerification, type ReadManifest, type ReadRendition, type VerificationOptions } from './verify-parts.ts';
import { type FragmentVerdict, mapOf, positionsOf, verifySequence } from './verify-sequence.ts';

/**
 * Verifies a publication against the manifests in its init segments: every init segment and every fragment, and that no
 * fragment is missing, added or moved. Reads fragments once, in constant memory. The signatures of the manifests, and what
 * else is in them, are the official reader's to validate.
 */
export async function verifyParts(
  folder: Pick<SourceFolder, 'open'>,
  renditions: readonly Rendition[],
  signal: AbortSignal,
  options: VerificationOptions = {},
): Promise<PublicationVerdict & { readonly verification: PartsVerification }> {
  const verification = new PartsVerification(folder, signal, options);
  const { manifests } = verification;
  const readings: ReadParts[] = [];
  for (const present of renditions) {
    const read = await verification.add(present);
    readings.push({ listed: { init: present.init, present }, read, map: mapOf(read) });
  }
  // A publication that was never signed is none that an unsigned rendition was added to.
  const findings = manifests.length === 0 ? [] : findingsOfParts(readings, manifests);
  return { verification, manifests, renditions: readings, findings };
}

function findingsOfParts(readings: readonly ReadParts[], manifests: readonly ReadManifest[]): PartFinding[] {
  const maps = readings.map(({ map }) => map);
  const used = new Set(maps);
  const findings = readings.flatMap(({ listed, read, map }, index) => {
    // Of several renditions by one map the first counts: the others are copies.
    return [...findingsOf(listed.present, read, maps.indexOf(map) === index ? map : null)];
  });
  const missing = manifests.flatMap(({ binding }, manifest): PartFinding[] => {
    const count = (binding?.maps ?? []).filter((map) => !used.has(map)).length;
    if (count === 0) return [];
    return [{ kind: 'rendition-missing', manifest, init: null, count, parts: [], locations: [] }];
  });
  return [...findings, ...missing];
}

/** The kinds of findings by the verdict on each fragment. */
const KINDS: Readonly<Partial<Record<FragmentVerdict['kind'], FindingKind>>> = {
  altered: 'altered',
  added: 'added',
  swapped: 'moved',
  reordered: 'moved',
};

const ADDED = { kind: 'added', origin: null } as const;

/** Finds what of a rendition is not as it was signed. `map` is that of its fragments; null where it has none of its own. */
function* findingsOf(
  { init, fragments }: Rendition,
  { manifest, binding, unknown, initMaps, fragments: read }: ReadRendition,
  map: StoredMap | null,
): Generator<PartFinding> {
  const found = { manifest, init, count: 1, parts: [], locations: [] };
  if (binding === null) {
    const why =
      unknown === null ? { kind: 'unsigned' as const } : { kind: 'unjudged' as const, problem: unknown.problem };
    yield { ...found, parts: [init], ...why };
    return;
  }
  if (initMaps.length === 0 || (map !== null && !initMaps.includes(map))) {
    yield { ...found, kind: 'init-altered', parts: [init] };
  }
  const stated = read.map((each) => each.found);
  const verdicts = map === null ? stated.map((): FragmentVerdict => ADDED) : verifySequence(stated, map);
  for (const [kind, indexes] of Map.groupBy(verdicts.keys(), (index) => KINDS[itemAt(verdicts, index).kind])) {
    if (kind === undefined) continue;
    const parts = indexes.slice(0, MAX_EXAMPLES).map((index) => itemAt(fragments, index));
    yield { ...found, kind, count: indexes.length, parts };
  }
  if (map === null) return;
  const taken = new Set(verdicts.flatMap((verdict) => positionsOf(verdict, map)));
  const count = map.count - taken.size;
  const locations: number[] = [];
  for (let location = 0; locations.length < Math.min(count, MAX_EXAMPLES); location += 1) {
    if (!taken.has(location)) locations.push(location);
  }
  if (count > 0) yield { ...found, kind: 'missing', count, locations };
}
