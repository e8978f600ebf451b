// @ts-nocheck
// Written by "npm run docs" from src/publications/verification/verify-sequence.ts: change that.
import { itemAt, valueAt } from './assert.js';

/**
 * A fragment in playback order: the position that it states; undefined where its file is missing. Here, an index counts in
 * playback order; a position counts in the map, that is, in the rendition as it was signed (the `location` of a Merkle box).
 */

/** The fate of a fragment since it was signed. */

/** The origin of a signed fragment: a map, and the position in it. */

/**
 * Returns the map that most of a rendition's fragments are bound by, of those that bind its init segment where they
 * agree; null where there is none.
 */
export function mapOf({ initMaps, fragments }                                               )                   {
  const counts = new Map                   ();
  for (const { map, isBound } of fragments.flatMap(({ found }) => found ?? [])) {
    // Fragments that were altered count where all are.
    counts.set(map, (counts.get(map) ?? 0) + (isBound ? fragments.length + 1 : 1));
  }
  const own = new Set(initMaps);
  const ranked = [...counts].sort(
    ([a, countA], [b, countB]) => countB - countA || Number(own.has(b)) - Number(own.has(a)),
  );
  return ranked[0]?.[0] ?? initMaps[0] ?? null;
}

/**
 * Verifies fragments in playback order by the map that they were signed under. A fragment has the position that it is
 * bound to; one that is bound to none is assigned the free position between its neighbours, if there is one.
 */
export function verifySequence(fragments                           , map           )                    {
  const anchors = chooseAnchors(fragments, map);
  const verdicts = new Array                 (fragments.length);
  const free = new FreePositions([...anchors.values()]);
  for (const { start, end, after, before } of gapsBetween(anchors, fragments.length, map.count)) {
    const indexes = Array.from({ length: end - start }, (_, index) => start + index);
    // Playlists may begin later than others: what comes first stands right before what follows.
    const isAtStart = start === 0 && end < fragments.length;
    const positions = isAtStart ? free.before(before, indexes.length) : free.between(after, before, indexes.length);
    verifyGap(indexes, fragments, positions, verdicts);
  }
  const positions = [...anchors.values()];
  const disorder = orderOf(positions);
  for (const [rank, [index, position]] of [...anchors].entries()) {
    const isBound = statedIn(fragments[index], map)?.isBound === true;
    verdicts[index] = anchored(isBound, position, disorder.get(rank), map, positions);
  }
  return verdicts;
}

function anchored(
  isBound         ,
  position        ,
  disorder                      ,
  map           ,
  positions                   ,
)                  {
  if (!isBound) return { kind: 'altered', position };
  if (disorder === undefined) return { kind: 'intact', position };
  if (disorder.kind === 'reordered') return { kind: 'reordered', position };
  return { kind: 'swapped', position: positions[disorder.partner] ?? null, origin: { map, position } };
}

/** Returns the positions of a map that a fragment stands for: where it is, and where it was signed. */
export function positionsOf(verdict                 , map                  )           {
  const origin = 'origin' in verdict && verdict.origin?.map === map ? verdict.origin : null;
  const own = 'position' in verdict ? verdict.position : null;
  return [own, origin?.position ?? null].filter((position) => position !== null);
}

/** Returns the position of a fragment in a map; undefined when it states none. */
function statedIn(fragment                , map           )                             {
  return fragment?.map === map && fragment.location < map.count ? fragment : undefined;
}

/** Returns the indexes of fragments that belong to the map, each with its position; of copies the one nearest to its position. */
function chooseAnchors(fragments                           , map           )                      {
  const best = new Map                ();
  for (const [index, fragment] of fragments.entries()) {
    const stated = statedIn(fragment, map);
    if (stated === undefined) continue;
    const known = best.get(stated.location);
    const anchor = { index, ...stated };
    if (known === undefined || isBetter(anchor, known)) best.set(stated.location, anchor);
  }
  const anchors = [...best].map(([position, { index }])                   => [index, position]);
  return new Map(anchors.sort(([first], [second]) => first - second));
}

/** A fragment that states a position. */

/** Prefers what is bound to what only says so, and then the fragment that is nearer to its position. */
function isBetter(anchor        , known        )          {
  if (anchor.isBound !== known.isBound) return anchor.isBound;
  return Math.abs(anchor.index - anchor.location) < Math.abs(known.index - known.location);
}

/** A run of indexes without anchors, and the positions on both sides of it. */

function* gapsBetween(anchors                             , length        , count        )                 {
  let start = 0;
  let after = -1;
  for (const [index, position] of [...anchors, [length, count]         ]) {
    if (index > start) yield { start, end: index, after, before: position };
    start = index + 1;
    after = position;
  }
}

/** The positions that no fragment has. Each is found in constant time, however many others lie between. */
class FreePositions {
  /** The first free position behind each that is taken. */
           #next = new Map                ();

  constructor(taken                   ) {
    for (const position of taken.toSorted((first, second) => second - first)) {
      this.#next.set(position, this.#next.get(position + 1) ?? position + 1);
    }
  }

  /** Returns the last positions before one, at most `limit`, in order. */
  before(end        , limit        )           {
    const free           = [];
    for (let position = end - 1; position >= 0 && free.length < limit; position -= 1) {
      if (!this.#next.has(position)) free.push(position);
    }
    return free.reverse();
  }

  /** Returns the first positions between two, at most `limit`. */
  between(after        , before        , limit        )           {
    const free           = [];
    let position = this.#next.get(after + 1) ?? after + 1;
    while (position < before && free.length < limit) {
      free.push(position);
      position = this.#next.get(position + 1) ?? position + 1;
    }
    return free;
  }
}

/** Assigns the free positions of a gap: to all fragments when there are enough, else to the missing files first. */
function verifyGap(
  indexes                   ,
  fragments                           ,
  free                   ,
  verdicts                   ,
)       {
  const isMissing = (index        )          => fragments[index] === undefined;
  const assigned = indexes.length <= free.length ? indexes : indexes.filter(isMissing);
  const positions = new Map(assigned.map((index, rank) => [index, free[rank] ?? null]));
  for (const index of indexes) {
    const position = positions.get(index) ?? null;
    const origin = originOf(fragments[index]);
    if (isMissing(index)) verdicts[index] = { kind: 'missing', position };
    else if (position === null) verdicts[index] = { kind: 'added', origin };
    else if (origin === null) verdicts[index] = { kind: 'altered', position };
    else verdicts[index] = { kind: 'swapped', position, origin };
  }
}

/** Returns the origin of a fragment, by the position that it is bound at; null where it is not. */
function originOf(fragment                )                        {
  return fragment?.isBound ? { map: fragment.map, position: fragment.location } : null;
}

/**
 * Returns the ranks that are out of order: pairs that stand at each other's position, and of the rest as few as have to
 * be moved for the others to be in order.
 */
function orderOf(positions                   )                        {
  const disorder = new Map                  ();
  const sorted = positions.toSorted((first, second) => first - second);
  const rankOf = new Map(sorted.map((position, rank) => [position, rank]));
  const target = positions.map((position) => valueAt(rankOf, position));
  for (const [rank, partner] of target.entries()) {
    if (partner !== rank && target[partner] === rank) disorder.set(rank, { kind: 'swapped', partner });
  }
  const rest = target.map((value, rank) => ({ value, rank })).filter(({ rank }) => !disorder.has(rank));
  const kept = longestIncreasing(rest.map(({ value }) => value));
  for (const [index, { rank }] of rest.entries()) if (!kept.has(index)) disorder.set(rank, { kind: 'reordered' });
  return disorder;
}

/** Returns the indexes of a longest increasing subsequence (patience sorting). */
function longestIncreasing(values                   )              {
  const tails           = [];
  const previous                         = [];
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
  const kept = new Set        ();
  for (let index = tails.at(-1); index !== undefined; index = previous[index]) kept.add(index);
  return kept;
}
