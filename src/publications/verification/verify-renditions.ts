import { itemAt } from '#errors/assert.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import { type Choice, idOf } from './choices.ts';
import type { ListedRendition } from './listed-renditions.ts';
import { MAX_SHIFT_SECONDS, type SignedTimes, type TimesOf } from './media-times.ts';
import type { StoredMap } from './stored-binding.ts';
import { positionIn, type ReadRendition } from './verify-parts.ts';
import {
  type FragmentOrigin,
  type FragmentVerdict,
  type PlayedFragment,
  positionsOf,
  verifySequence,
} from './verify-sequence.ts';

/** A rendition as it is listed and as it was read. */
export interface RenditionReading {
  readonly listed: ListedRendition;
  /** Null where its init segment is missing. */
  readonly read: ReadRendition | null;
  /** The map that most of its fragments are bound by; null where nothing is known that it could be verified by. */
  readonly map: StoredMap | null;
}

/** Kinds of differences between a part of a publication and what was signed. */
type DeviationKind = Exclude<FragmentVerdict['kind'], 'intact'> | 'unsigned';

/** A difference between a part of a publication, or a run of missing ones, and what was signed. */
export interface Deviation {
  readonly part: 'init' | 'fragment';
  readonly kind: DeviationKind;
  /** Fragments that it stands for: only missing ones that follow one another are told together. */
  readonly count: number;
  /** Null where no playlist names it. */
  readonly file: MediaPart | null;
  /** The playlist that shows it; null for an init segment. */
  readonly playlist: string | null;
  /** Position in the playback order of that playlist, counted from zero; null where it has none. */
  readonly index: number | null;
  /** Position in the rendition as it was signed; null where it was not. */
  readonly signedIndex: number | null;
  /** Seconds from the start of the programme; null where the playlist does not tell. */
  readonly startSeconds: number | null;
  /** The position at which the part was signed, if that is known and another one; the index is null for an init segment. */
  readonly origin: { readonly rendition: number; readonly index: number | null } | null;
  /** True where the playlist alone shows it, and no file: a part that it leaves out, or plays again. */
  readonly isOfPlaylist: boolean;
}

/** Returns true for what signed playlists may say themselves: media that they leave out, repeat or do not bind. */
export function isOfPlaylists({ isOfPlaylist, kind }: Pick<Deviation, 'isOfPlaylist' | 'kind'>): boolean {
  return isOfPlaylist || kind === 'unsigned';
}

/** The verdict of one rendition. */
export interface VerifiedRendition extends RenditionReading {
  /** Fragments that are at their position with the bytes that were signed, by `partKey`. */
  readonly intact: ReadonlySet<string>;
  readonly deviations: readonly Deviation[];
}

/** Verifies the renditions of a publication, each by its map. */
export function verifyRenditions(
  readings: readonly RenditionReading[],
  choices: readonly Choice[],
): VerifiedRendition[] {
  const numberOf = new Map(
    // Of several renditions by one map the first counts: the others are copies.
    readings.flatMap(({ map }, index): [StoredMap, number][] => (map === null ? [] : [[map, index]])).reverse(),
  );
  const endOf = endsOfPictures(readings, choices);
  return readings.map(({ listed, read, map }, index) => {
    const first = map === null ? undefined : numberOf.get(map);
    const init = initDeviations(listed, read, map, numberOf);
    if (first !== undefined && first !== index) init.push(initDeviation(listed.init, 'added', first));
    const endOfPictures = endOf.get(partKey(listed.init)) ?? Number.POSITIVE_INFINITY;
    const { intact, deviations } = verifyOrders({ listed, read, map }, numberOf, endOfPictures);
    return { listed, read, map, intact, deviations: [...init, ...deviations] };
  });
}

/** Returns when the signed pictures end that play together with an init segment, in seconds, by its `partKey`. */
function endsOfPictures(readings: readonly RenditionReading[], choices: readonly Choice[]): Map<string, number> {
  const ownEnds = new Map<string, number>();
  for (const { listed, read } of readings) {
    for (const { times, found } of read?.fragments ?? []) {
      if (times?.isOfPictures !== true || !found?.isBound) continue;
      const key = partKey(listed.init);
      ownEnds.set(key, Math.max(ownEnds.get(key) ?? 0, times.startSeconds + times.durationSeconds));
    }
  }
  const ends = new Map<string, number>();
  for (const { played } of choices) {
    const keys = played.map(({ init }) => partKey(init));
    const pictures = keys.flatMap((key) => ownEnds.get(key) ?? []);
    if (pictures.length > 0) for (const key of keys) ends.set(key, Math.max(ends.get(key) ?? 0, ...pictures));
  }
  return ends;
}

/** Returns when fragments play by their own boxes, as far as they and their init segments are those that were signed. */
export function timesIn(renditions: readonly VerifiedRendition[]): TimesOf {
  const byInit = new Map<string, Map<string, SignedTimes>>();
  for (const { listed, read, map, intact } of renditions) {
    const times = new Map<string, SignedTimes>();
    byInit.set(partKey(listed.init), times);
    if (read === null || map === null || !read.initMaps.includes(map)) continue;
    for (const [index, part] of listed.present.fragments.entries()) {
      const { times: own = null, found = null } = read.fragments[index] ?? {};
      if (own !== null && found?.map === map && intact.has(partKey(part))) {
        times.set(partKey(part), { ...own, position: found.location, manifest: idOf(read) });
      }
    }
  }
  return (init, fragment) => byInit.get(partKey(init))?.get(partKey(fragment)) ?? null;
}

/** A deviation of one part that the file shows, and of which no more is known. */
export const DEVIATION = {
  count: 1,
  playlist: null,
  index: null,
  signedIndex: null,
  origin: null,
  isOfPlaylist: false,
} as const;

function initDeviation(file: MediaPart, kind: DeviationKind, rendition?: number): Deviation {
  const origin = rendition === undefined ? null : { rendition, index: null };
  return { ...DEVIATION, part: 'init', kind, file, startSeconds: 0, origin };
}

function initDeviations(
  { init, isInitMissing }: ListedRendition,
  read: ReadRendition | null,
  map: StoredMap | null,
  numberOf: ReadonlyMap<StoredMap, number>,
): Deviation[] {
  const found = (kind: DeviationKind, rendition?: number) => [initDeviation(init, kind, rendition)];
  if (isInitMissing || read === null) return found('missing');
  if (read.manifest === null) return found('unsigned');
  if (read.unknown?.isDisturbed === true) return found('altered');
  if (map === null) return read.binding === null ? [] : found('altered');
  if (read.initMaps.includes(map)) return [];
  const rendition = read.initMaps.map((other) => numberOf.get(other)).find((number) => number !== undefined);
  return found(rendition === undefined ? 'altered' : 'swapped', rendition);
}

/** Verifies one rendition in the order of each playlist that states another one. */
function verifyOrders(
  { listed, read, map }: RenditionReading,
  numberOf: ReadonlyMap<StoredMap, number>,
  endOfPictures: number,
): Pick<VerifiedRendition, 'intact' | 'deviations'> {
  const { fragments: present } = listed.present;
  const foundOf = new Map(present.map((part, index) => [partKey(part), read?.fragments[index]?.found ?? null]));
  // The manifest of its init segment can be verified, and binds neither that nor any fragment.
  const isForeign = map === null && read !== null && read.binding !== null;
  const skipped: Run[] = [];
  const startOf = new Map<number, number | null>();
  const intact = new Set<string>();
  const deviations = new Map<string, Deviation>();
  for (const { playlist, fragments, repeats } of listed.orders) {
    const played = fragments.map(({ part }) => foundOf.get(partKey(part)));
    const verdicts =
      map === null ? played.map((found) => verdictWithoutMap(found, isForeign)) : verifySequence(played, map);
    const covered = verdicts.flatMap((verdict) => (verdict === null ? [] : positionsOf(verdict, map)));
    if (map !== null) skipped.push(...runsBetween([-1, ...covered, map.count], playlist));
    for (const [index, verdict] of verdicts.entries()) {
      if (verdict === null) continue;
      const { part: file, startSeconds } = itemAt(fragments, index);
      const signedIndex = 'position' in verdict ? verdict.position : null;
      if (signedIndex !== null) startOf.set(signedIndex, startSeconds);
      const key = partKey(file);
      if (verdict.kind === 'intact') intact.add(key);
      // Several playlists may show it; the longest, which comes first, tells most of where it belongs.
      else if (!deviations.has(key)) {
        const origin = 'origin' in verdict ? originOf(verdict.origin, numberOf) : null;
        const about = { kind: verdict.kind, file, playlist, index, signedIndex, startSeconds, origin };
        deviations.set(key, { ...DEVIATION, part: 'fragment', ...about });
      }
    }
    for (const { part: file, startSeconds, index } of repeats) {
      const about = { part: 'fragment', kind: 'added', file, playlist, index, startSeconds } as const;
      deviations.set(`${partKey(file)}\n${playlist}\n${index}`, { ...DEVIATION, ...about, isOfPlaylist: true });
    }
  }
  for (const { file, isOfPlaylist } of deviations.values()) {
    if (file !== null && !isOfPlaylist) intact.delete(partKey(file));
  }
  const isTail = map === null || read === null ? () => false : tailTest(read, map, endOfPictures);
  const runs = joinRuns(skipped).filter((run) => !isTail(run));
  const leftOut = runs.map(({ start, end, playlist }): Deviation => {
    // It was played where what follows it is played now.
    const startSeconds = startOf.get(end) ?? (start === 0 ? 0 : (startOf.get(start - 1) ?? null));
    const about = {
      part: 'fragment',
      kind: 'missing',
      file: null,
      playlist,
      startSeconds,
      isOfPlaylist: true,
    } as const;
    return { ...DEVIATION, ...about, count: end - start, signedIndex: start };
  });
  return { intact, deviations: [...deviations.values(), ...leftOut] };
}

function originOf(origin: FragmentOrigin | null, numberOf: ReadonlyMap<StoredMap, number>): Deviation['origin'] {
  const rendition = origin === null ? undefined : numberOf.get(origin.map);
  return origin === null || rendition === undefined ? null : { rendition, index: origin.position };
}

/**
 * Returns a function that tells an end which is no longer than what playlists may cut, and sound that goes on behind the pictures that it
 * plays with.
 */
function tailTest({ fragments }: ReadRendition, map: StoredMap, endOfPictures: number): (run: Run) => boolean {
  /** The times of the fragments that are there, by their positions. */
  const timesAt = new Map(fragments.map(({ found, times }) => [positionIn(map, found), times]));
  return ({ start, end }) => {
    if (end !== map.count) return false;
    const before = timesAt.get(start - 1);
    if (before?.isOfPictures === false) {
      const played = before.startSeconds + before.durationSeconds;
      if (played >= endOfPictures - MAX_SHIFT_SECONDS) return true;
    }
    let seconds = 0;
    for (let position = start; position < end; position += 1)
      seconds += timesAt.get(position)?.durationSeconds ?? Number.NaN;
    return seconds <= MAX_SHIFT_SECONDS;
  };
}

/** Positions `[start, end)` of a map that a playlist does not have. */
interface Run {
  readonly start: number;
  readonly end: number;
  readonly playlist: string | null;
}

/** Returns the runs between positions, in whatever order these are. */
function runsBetween(positions: readonly number[], playlist: string | null): Run[] {
  const sorted = [...new Set(positions)].sort((first, second) => first - second);
  return sorted.flatMap((position, rank) => {
    const next = sorted[rank + 1] ?? position + 1;
    return next === position + 1 ? [] : [{ start: position + 1, end: next, playlist }];
  });
}

/** Returns the runs in order, those that overlap as one. */
function joinRuns(runs: readonly Run[]): Run[] {
  const joined: Run[] = [];
  for (const run of [...runs].sort((first, second) => first.start - second.start)) {
    const last = joined.at(-1);
    if (last === undefined || run.start >= last.end) joined.push(run);
    else joined[joined.length - 1] = { ...last, end: Math.max(last.end, run.end) };
  }
  return joined;
}

/** Verifies a fragment of a rendition without a map: null where only the official reader can tell. */
function verdictWithoutMap(found: PlayedFragment, isForeign: boolean): FragmentVerdict | null {
  if (found === undefined) return { kind: 'missing', position: null };
  return isForeign ? { kind: 'added', origin: null } : null;
}
