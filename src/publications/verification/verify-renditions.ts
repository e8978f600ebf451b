import { itemAt } from '#errors/assert.ts';
import { type MediaPart, partKey } from '../media-part.ts';
import { type Choice, idOf } from './choices.ts';
import type { ListedOrder, ListedRendition } from './listed-renditions.ts';
import type { FragmentTimes } from './media-times.ts';
import type { StoredMap } from './stored-binding.ts';
import { MAX_SHIFT_SECONDS, type SignedTimes, type TimesOf } from './timed-fragments.ts';
import { type FoundFragment, positionIn, type ReadRendition } from './verify-parts.ts';
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
    const verify = new OrderVerification({ listed, read, map }, numberOf, endOfPictures);
    const { intact, deviations } = verify.verdict();
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
class OrderVerification {
  readonly #listed: ListedRendition;
  readonly #map: StoredMap | null;
  /** True where the manifest of its init segment can be verified, and binds neither that nor any fragment. */
  readonly #isForeign: boolean;
  readonly #numberOf: ReadonlyMap<StoredMap, number>;
  readonly #foundOf: ReadonlyMap<string, FoundFragment>;
  /** Positions that a playlist leaves out, whether others name them or not. */
  readonly #skipped: Run[] = [];
  readonly #startOf = new Map<number, number | null>();
  /** The times of the fragments that are there, by their positions. */
  readonly #timesAt = new Map<number, FragmentTimes>();
  readonly #endOfPictures: number;
  readonly #intact = new Set<string>();
  readonly #deviations = new Map<string, Deviation>();

  constructor(
    { listed, read, map }: RenditionReading,
    numberOf: ReadonlyMap<StoredMap, number>,
    endOfPictures: number,
  ) {
    this.#endOfPictures = endOfPictures;
    this.#listed = listed;
    this.#map = map;
    this.#isForeign = map === null && read !== null && read.binding !== null;
    this.#numberOf = numberOf;
    const { fragments } = listed.present;
    for (const { found, times } of read?.fragments ?? []) {
      const position = positionIn(map, found);
      if (position !== undefined && times !== null) this.#timesAt.set(position, times);
    }
    this.#foundOf = new Map(fragments.map((part, index) => [partKey(part), read?.fragments[index]?.found ?? null]));
  }

  verdict(): Pick<VerifiedRendition, 'intact' | 'deviations'> {
    for (const order of this.#listed.orders) this.#verify(order);
    const deviations = [...this.#deviations.values(), ...this.#unstated()];
    for (const { file, isOfPlaylist } of deviations) {
      if (file !== null && !isOfPlaylist) this.#intact.delete(partKey(file));
    }
    return { intact: this.#intact, deviations };
  }

  #verify(order: ListedOrder): void {
    const played = order.fragments.map(({ part }) => this.#foundOf.get(partKey(part)));
    const verdicts =
      this.#map === null
        ? played.map((found) => verdictWithoutMap(found, this.#isForeign))
        : verifySequence(played, this.#map);
    const covered = verdicts.flatMap((verdict) => (verdict === null ? [] : positionsOf(verdict, this.#map)));
    if (this.#map !== null) this.#skipped.push(...runsBetween([-1, ...covered, this.#map.count], order.playlist));
    for (const [index, verdict] of verdicts.entries()) if (verdict !== null) this.#note(verdict, index, order);
    for (const repeat of order.repeats) this.#noteRepeat(repeat, order.playlist);
  }

  #noteRepeat({ part: file, startSeconds, index }: ListedOrder['repeats'][number], playlist: string): void {
    const key = `${partKey(file)}\n${playlist}\n${index}`;
    const about = { part: 'fragment', kind: 'added', file, playlist, index, startSeconds } as const;
    this.#deviations.set(key, { ...DEVIATION, ...about, isOfPlaylist: true });
  }

  #note(verdict: FragmentVerdict, index: number, { fragments, playlist }: ListedOrder): void {
    const { part: file, startSeconds } = itemAt(fragments, index);
    const origin = 'origin' in verdict ? verdict.origin : null;
    const signedIndex = 'position' in verdict ? verdict.position : null;
    if (signedIndex !== null) this.#startOf.set(signedIndex, startSeconds);
    if (verdict.kind === 'intact') return void this.#intact.add(partKey(file));
    // Several playlists may show it; the longest, which comes first, tells most of where it belongs.
    const key = partKey(file);
    if (this.#deviations.has(key)) return;
    const about = { part: 'fragment', kind: verdict.kind, file, playlist, index, signedIndex, startSeconds } as const;
    this.#deviations.set(key, { ...DEVIATION, ...about, origin: this.#originOf(origin) });
  }

  #originOf(origin: FragmentOrigin | null): Deviation['origin'] {
    const rendition = origin === null ? undefined : this.#numberOf.get(origin.map);
    return origin === null || rendition === undefined ? null : { rendition, index: origin.position };
  }

  /** Returns true for an end that is no longer than what playlists may cut, and for sound that goes on behind the pictures that it plays with. */
  #isTail({ start, end }: Run): boolean {
    if (end !== this.#map?.count) return false;
    const before = this.#timesAt.get(start - 1);
    if (before?.isOfPictures === false) {
      const played = before.startSeconds + before.durationSeconds;
      if (played >= this.#endOfPictures - MAX_SHIFT_SECONDS) return true;
    }
    let seconds = 0;
    for (let position = start; position < end; position += 1)
      seconds += this.#timesAt.get(position)?.durationSeconds ?? Number.NaN;
    return seconds <= MAX_SHIFT_SECONDS;
  }

  /** Returns the runs of fragments that were signed and that a playlist leaves out. */
  #unstated(): Deviation[] {
    if (this.#map === null) return [];
    const about = { ...DEVIATION, part: 'fragment', kind: 'missing', file: null, isOfPlaylist: true } as const;
    const runs = joinRuns(this.#skipped).filter((run) => !this.#isTail(run));
    return runs.map(({ start, end, playlist: shownBy }) => {
      // It was played where what follows it is played now.
      const startSeconds = this.#startOf.get(end) ?? (start === 0 ? 0 : (this.#startOf.get(start - 1) ?? null));
      return { ...about, count: end - start, signedIndex: start, startSeconds, playlist: shownBy };
    });
  }
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
