import type { MediaPart } from '../publication.ts';
import { EXAMPLES_MAX_COUNT, type FindingKind, type PartFinding } from './publication-verdict.ts';
import type { StoredMap } from './stored-maps.ts';

/** A fragment as its Merkle box and its hash show it. */
export interface FoundFragment {
  /** The map that its Merkle box names; null where it has no such box, or there is no such map. */
  readonly map: StoredMap | null;
  /** Where the Merkle box says it is. */
  readonly location: number;
  /** Whether its hash is bound there. */
  readonly isBound: boolean;
}

/** A finding without what is known of the rendition. */
export type FragmentsFinding = Omit<PartFinding, 'manifest' | 'init'>;

/**
 * Judges the fragments of one rendition, which are found in playback order. `own` are the maps that bind its init segment.
 * Of each of those that a fragment belongs to, all fragments have to be there, once and in their order.
 */
export function judgeFragments(
  parts: readonly MediaPart[],
  found: readonly FoundFragment[],
  own: ReadonlySet<StoredMap>,
): FragmentsFinding[] {
  const positions: Record<'altered' | 'added' | 'moved', number[]> = { altered: [], added: [], moved: [] };
  const places = new Map<StoredMap, Map<number, number>>();
  for (const [position, { map, location, isBound }] of found.entries()) {
    const isOwn = map !== null && own.has(map);
    const taken = isOwn ? (places.get(map) ?? new Map<number, number>()) : null;
    if (taken === null || map === null || location >= map.count || taken.has(location)) {
      positions.added.push(position);
      continue;
    }
    taken.set(location, position);
    places.set(map, taken);
    if (!isBound) positions.altered.push(position);
  }
  const missing: FragmentsFinding[] = [];
  for (const [map, taken] of places) {
    positions.moved.push(...movedPositions(taken));
    missing.push(...missingFrom(map, taken));
  }
  const present = Object.entries(positions) as [FindingKind, number[]][];
  return [...present.flatMap(([kind, at]) => findingAt(kind, at, parts)), ...missing];
}

/** Positions in playback order whose fragments do not follow one another as they were signed. */
function movedPositions(taken: ReadonlyMap<number, number>): number[] {
  const locations = [...taken.keys()];
  const sorted = locations.toSorted((first, second) => first - second);
  return locations.flatMap((location, rank) => (sorted[rank] === location ? [] : [taken.get(location) as number]));
}

function missingFrom({ count }: StoredMap, taken: ReadonlyMap<number, number>): FragmentsFinding[] {
  const missing = count - taken.size;
  if (missing === 0) return [];
  const locations: number[] = [];
  const wanted = Math.min(missing, EXAMPLES_MAX_COUNT);
  for (let location = 0; locations.length < wanted; location += 1) if (!taken.has(location)) locations.push(location);
  return [{ kind: 'missing', count: missing, parts: [], locations }];
}

function findingAt(kind: FindingKind, positions: readonly number[], parts: readonly MediaPart[]): FragmentsFinding[] {
  if (positions.length === 0) return [];
  const examples = positions.slice(0, EXAMPLES_MAX_COUNT).map((position) => parts[position] as MediaPart);
  return [{ kind, count: positions.length, parts: examples, locations: [] }];
}
