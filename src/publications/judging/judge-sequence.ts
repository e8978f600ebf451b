import { itemAt, valueAt } from '#errors/assert.ts';
import type { StoredMap } from '../checking/stored-maps.ts';
import type { FoundFragment, ReadRendition } from '../checking/verify-parts.ts';

/** A fragment in playback order, as far as its place is judged. */
export interface PlacedFragment {
  /** The positions that it states; null where its file is missing. */
  readonly found: FoundFragment | null;
}

/** The fate of a fragment since it was signed. */
export type FragmentVerdict =
  /** It is where it was signed, with the bytes that were signed. */
  | { readonly kind: 'intact'; readonly location: number }
  /** It is in its place, and its bytes are other ones. */
  | { readonly kind: 'altered'; readonly location: number }
  /** It is named, and its file is missing; the location is null where more is missing than can be assigned. */
  | { readonly kind: 'missing'; readonly location: number | null }
  /** Another fragment of the publication stands in the place of `location`; null where it took the place of none. */
  | { readonly kind: 'swapped'; readonly location: number | null; readonly origin: FragmentOrigin }
  /** It belongs to the rendition, and the others do not follow it as they were signed. */
  | { readonly kind: 'reordered'; readonly location: number }
  /** It was never signed for this publication, or is there more than once. */
  | { readonly kind: 'added'; readonly origin: FragmentOrigin | null };

/** Where a fragment was signed: a map, and the position in it. */
export interface FragmentOrigin {
  readonly map: StoredMap;
  readonly location: number;
}

/**
 * Returns the map that most of a rendition's fragments are bound by, of those that bind its init segment where they agree; null
 * where there is none.
 */
export function mapOf({ initMaps, found }: Pick<ReadRendition, 'initMaps' | 'found'>): StoredMap | null {
  const counts = new Map<StoredMap, number>();
  for (const { map, isBound } of found.flat()) {
    // Fragments that were altered count where all are.
    counts.set(map, (counts.get(map) ?? 0) + (isBound ? found.length + 1 : 1));
  }
  const own = new Set(initMaps);
  const ranked = [...counts].sort(
    ([a, countA], [b, countB]) => countB - countA || Number(own.has(b)) - Number(own.has(a)),
  );
  return ranked[0]?.[0] ?? initMaps[0] ?? null;
}

/**
 * Judges fragments in playback order by the map that they were signed under. A fragment is placed by the position that it is bound
 * to; one that is bound to none is assigned to the free position between its neighbours, where there is one.
 */
export function judgeSequence(fragments: readonly PlacedFragment[], map: StoredMap): FragmentVerdict[] {
  const anchors = chooseAnchors(fragments, map);
  const verdicts = new Array<FragmentVerdict>(fragments.length);
  const free = new FreeLocations([...anchors.values()]);
  for (const { start, end, after, before } of gapsBetween(anchors, fragments.length, map.count)) {
    const positions = Array.from({ length: end - start }, (_, index) => start + index);
    judgeGap(positions, fragments, free.between(after, before, positions.length), map, verdicts);
  }
  const locations = [...anchors.values()];
  const disorder = orderOf(locations);
  for (const [rank, [position, location]] of [...anchors].entries()) {
    const isBound = placeIn(fragments[position]?.found ?? null, map)?.isBound === true;
    verdicts[position] = anchored(isBound, location, disorder.get(rank), map, locations);
  }
  return verdicts;
}

function anchored(
  isBound: boolean,
  location: number,
  disorder: Disorder | undefined,
  map: StoredMap,
  locations: readonly number[],
): FragmentVerdict {
  if (!isBound) return { kind: 'altered', location };
  if (disorder === undefined) return { kind: 'intact', location };
  if (disorder.kind === 'reordered') return { kind: 'reordered', location };
  return { kind: 'swapped', location: locations[disorder.partner] ?? null, origin: { map, location } };
}

function placeIn(found: FoundFragment | null, map: StoredMap) {
  return found?.find((place) => place.map === map && place.location < map.count);
}

/** Returns the positions of fragments that belong to the map, each with its location; of copies the one nearest to its place. */
function chooseAnchors(fragments: readonly PlacedFragment[], map: StoredMap): Map<number, number> {
  const best = new Map<number, { position: number; isBound: boolean }>();
  for (const [position, { found }] of fragments.entries()) {
    const place = placeIn(found, map);
    if (place === undefined) continue;
    const known = best.get(place.location);
    if (known === undefined || isBetter({ position, ...place }, known, place.location)) {
      best.set(place.location, { position, isBound: place.isBound });
    }
  }
  const anchors = [...best].map(([location, { position }]): [number, number] => [position, location]);
  return new Map(anchors.sort(([first], [second]) => first - second));
}

type Candidate = { readonly position: number; readonly isBound: boolean };

/** Prefers what is bound to what only says so, and then the fragment that is nearer to its location. */
function isBetter(candidate: Candidate, known: Candidate, location: number): boolean {
  if (candidate.isBound !== known.isBound) return candidate.isBound;
  return Math.abs(candidate.position - location) < Math.abs(known.position - location);
}

/** A run of positions without anchors, and the locations on both sides of it. */
interface Gap {
  readonly start: number;
  readonly end: number;
  readonly after: number;
  readonly before: number;
}

function* gapsBetween(anchors: ReadonlyMap<number, number>, length: number, count: number): Generator<Gap> {
  let start = 0;
  let after = -1;
  for (const [position, location] of [...anchors, [length, count] as const]) {
    if (position > start) yield { start, end: position, after, before: location };
    start = position + 1;
    after = location;
  }
}

/** The locations that no fragment has. Each is found in constant time, however many others lie between. */
class FreeLocations {
  /** The first free location behind each that is taken. */
  readonly #next = new Map<number, number>();

  constructor(taken: readonly number[]) {
    for (const location of taken.toSorted((first, second) => second - first)) {
      this.#next.set(location, this.#next.get(location + 1) ?? location + 1);
    }
  }

  /** Returns the first locations between two, at most `limit`. */
  between(after: number, before: number, limit: number): number[] {
    const free: number[] = [];
    let location = this.#next.get(after + 1) ?? after + 1;
    while (location < before && free.length < limit) {
      free.push(location);
      location = this.#next.get(location + 1) ?? location + 1;
    }
    return free;
  }
}

/** Assigns the free locations to what stands there: to all where there are enough, else to the missing files first. */
function judgeGap(
  positions: readonly number[],
  fragments: readonly PlacedFragment[],
  free: readonly number[],
  map: StoredMap,
  verdicts: FragmentVerdict[],
): void {
  const isMissing = (position: number): boolean => fragments[position]?.found === null;
  const assigned = positions.length <= free.length ? positions : positions.filter(isMissing);
  const locations = new Map(assigned.map((position, index) => [position, free[index] ?? null]));
  for (const position of positions) {
    const location = locations.get(position) ?? null;
    const origin = originOf(fragments[position]?.found ?? null, map);
    if (isMissing(position)) verdicts[position] = { kind: 'missing', location };
    else if (location === null) verdicts[position] = { kind: 'added', origin };
    else if (origin === null) verdicts[position] = { kind: 'altered', location };
    else verdicts[position] = { kind: 'swapped', location, origin };
  }
}

/** Returns where a fragment was signed, by a position that binds it; null where none does. */
function originOf(found: FoundFragment | null, own: StoredMap): FragmentOrigin | null {
  const bound = found?.filter(({ isBound }) => isBound) ?? [];
  const place = bound.find(({ map }) => map === own) ?? bound[0];
  return place === undefined ? null : { map: place.map, location: place.location };
}

type Disorder = { readonly kind: 'reordered' } | { readonly kind: 'swapped'; readonly partner: number };

/**
 * Returns the ranks that are out of order: pairs that stand in each other's place, and of the rest as few as have to be moved
 * for the others to be in order.
 */
function orderOf(locations: readonly number[]): Map<number, Disorder> {
  const disorder = new Map<number, Disorder>();
  const sorted = locations.toSorted((first, second) => first - second);
  const rankOf = new Map(sorted.map((location, rank) => [location, rank]));
  const target = locations.map((location) => valueAt(rankOf, location));
  for (const [rank, partner] of target.entries()) {
    if (partner !== rank && target[partner] === rank) disorder.set(rank, { kind: 'swapped', partner });
  }
  const rest = target.map((value, rank) => ({ value, rank })).filter(({ rank }) => !disorder.has(rank));
  const kept = longestIncreasing(rest.map(({ value }) => value));
  for (const [index, { rank }] of rest.entries()) if (!kept.has(index)) disorder.set(rank, { kind: 'reordered' });
  return disorder;
}

/** Returns the indexes of a longest increasing subsequence (patience sorting). */
function longestIncreasing(values: readonly number[]): Set<number> {
  const tails: number[] = [];
  const previous: (number | undefined)[] = [];
  for (const [index, value] of values.entries()) {
    let low = 0;
    for (let high = tails.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (itemAt(values, itemAt(tails, middle)) < value) low = middle + 1;
      else high = middle;
    }
    previous[index] = low === 0 ? undefined : tails[low - 1];
    tails[low] = index;
  }
  const kept = new Set<number>();
  for (let index = tails.at(-1); index !== undefined; index = previous[index]) kept.add(index);
  return kept;
}
