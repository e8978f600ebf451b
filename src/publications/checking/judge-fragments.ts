import type { MediaPart } from '../publication.ts';
import { EXAMPLES_MAX_COUNT, type FindingKind, type PartFinding } from './publication-verdict.ts';
import type { StoredMap } from './stored-maps.ts';

/** Where one Merkle box of a fragment says that the fragment is. */
export interface FoundPlace {
  readonly map: StoredMap;
  readonly location: number;
  /** Whether the fragment's hash is bound there. */
  readonly isBound: boolean;
}

/** A fragment by its Merkle boxes, as a rule one; none where one of them cannot be read, or names no map. */
export type FoundFragment = readonly FoundPlace[];

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
  for (const [position, fragment] of found.entries()) {
    const isOwn = fragment.every(
      ({ map, location }) => own.has(map) && location < map.count && places.get(map)?.has(location) !== true,
    );
    const mapCount = new Set(fragment.map(({ map }) => map)).size;
    if (mapCount === 0 || mapCount < fragment.length || !isOwn) {
      positions.added.push(position);
      continue;
    }
    for (const { map, location } of fragment) {
      places.set(map, (places.get(map) ?? new Map<number, number>()).set(location, position));
    }
    if (!fragment.every(({ isBound }) => isBound)) positions.altered.push(position);
  }
  const taken = [...places];
  positions.moved = taken.flatMap(([, positionOf]) => movedPositions(positionOf));
  const missing = taken.flatMap(([map, positionOf]) => missingFrom(map, positionOf));
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
