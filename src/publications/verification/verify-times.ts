import { itemAt } from '#errors/assert.ts';
import { describePart } from '../media-part.ts';
import type { RenditionListing } from '../playlists/rendition-listings.ts';
import type { Choice } from './choices.ts';
import type { FragmentTimes } from './media-times.ts';
import { type FoundInPlaylist, onceByLine } from './playlist-findings.ts';
import { orderOfSections, sectionLeftOut, sectionsByInit, sectionsByPeriod } from './sections.ts';
import {
  MAX_SHIFT_SECONDS,
  type Problem,
  problemOfKey,
  type SignedTimes,
  type TimedFragment,
  type TimesOf,
  timed,
} from './timed-fragments.ts';

/** A listing of a playlist, with those of its fragments whose times are known. */
interface TimedListing {
  readonly playlist: string;
  readonly fragments: readonly TimedFragment[];
}

/** The times that playlists state, compared with those of the media. */
interface VerifiedTimes {
  readonly findings: readonly FoundInPlaylist[];
  /** Playlists that play media under several init segments one after the other, where nothing says in which order. */
  readonly unordered: readonly string[];
}

/** Finds the playlists whose times cut or move signed media, each with the first place where it does. */
export function verifyTimes(
  listings: readonly RenditionListing[],
  choices: readonly Choice[],
  timesOf: TimesOf,
): VerifiedTimes {
  const findings: FoundInPlaylist[] = [];
  const unordered: string[] = [];
  const known = listings.map((listing) => ({ playlist: listing.playlist, fragments: timed(listing, timesOf) }));
  const signed = sectionsByInit(known.flatMap(({ fragments }) => fragments));
  for (const [playlist, own] of Map.groupBy(known, (listing) => listing.playlist)) {
    const sequences = own.map(({ fragments }) => fragments);
    const isHls = sequences.flat()[0]?.window === null;
    // The sections of an HLS playlist follow one another; the representations of an MPD play beside each other.
    const played = isHls ? [sequences.flat().sort((first, second) => first.position - second.position)] : sequences;
    const pictures = picturesIn(sequences.flat());
    const [found] = [
      ...played.flatMap((each) => problemsIn(each, pictures)),
      ...(isHls ? [] : [...clocksApart(sequences), ...sequences.flatMap(partsBeside)]),
    ];
    if (found !== undefined) findings.push(describe(playlist, found));
    const sections = isHls ? sectionsByInit(played.flat()) : sectionsByPeriod(sequences.flat());
    const order = sectionLeftOut(sections, signed) ?? orderOfSections(sections);
    if (order === 'unknown') unordered.push(playlist);
    else if (order !== 'signed') findings.push(describe(playlist, order));
  }
  return {
    findings: [...findings, ...datesApart(choices, known), ...sectionsApart(choices, known)],
    unordered,
  };
}

function describe(playlist: string, { at: { line, part, startSeconds }, problem }: Problem): FoundInPlaylist {
  const about = { playlist, line, kind: 'ambiguous', problem: `"${describePart(part)}": ${problem}` } as const;
  return startSeconds === null ? about : { ...about, startSeconds };
}

/** Returns what is wrong first with the times of fragments that are played one after the other. */
function problemsIn(fragments: readonly TimedFragment[], pictures: PictureSections): Problem[] {
  let run = new Run();
  const cut = new CutByPeriods();
  const isHls = fragments[0]?.window === null;
  const isInOrder = areInOrder(fragments);
  for (const [index, fragment] of fragments.entries()) {
    const before = fragments[index - 1];
    if (before !== undefined && (fragment.section !== before.section || !follows(before, fragment))) {
      const drift = isHls ? run.problemAtEnd() : null;
      if (drift !== null) return [{ at: before, problem: drift }];
      run = new Run(run);
    }
    const problem =
      problemOfKey(fragment) ??
      problemOfDuration(fragment) ??
      problemOfWindow(fragment, pictures) ??
      cut.problemWith(fragment, pictures) ??
      (isInOrder ? problemOfPlace(fragment) : null) ??
      (isHls && before !== undefined ? problemOfJump(before, fragment) : null) ??
      (isHls ? run.problemOfDrift(fragment) : null) ??
      run.problemOfDate(fragment);
    if (problem !== null) return [{ at: fragment, problem }];
    run.add(fragment);
  }
  const last = fragments.at(-1);
  const drift = isHls ? run.problemAtEnd() : null;
  return drift === null || last === undefined ? [] : [{ at: last, problem: drift }];
}

/** Returns true for fragments in the signed order: one that is missing, or stands elsewhere, moves those behind it. */
function areInOrder(fragments: readonly TimedFragment[]): boolean {
  return fragments.every(({ own }, index) => own.position === (fragments[index - 1]?.own.position ?? -1) + 1);
}

/** Fragments that players place by the first of them, in the order in which they were signed: those of a period, or between two discontinuities. */
class Run {
  /** Seconds that the durations before it cut. */
  readonly #cutBefore: number;
  #stated = 0;
  #rounding = 0;
  #sample = 0;
  #start: number | null = null;
  #end = 0;
  /** Seconds between its stated time of day and its own start. */
  #date: number | null = null;

  constructor(before?: Run) {
    this.#cutBefore = before?.cutSeconds ?? 0;
  }

  /** Seconds that the stated durations cut, from the first run on, beside what rounding may. */
  get cutSeconds(): number {
    return this.#cutBefore + Math.max(this.#end - (this.#start ?? 0) - this.#stated - this.#rounding, 0);
  }

  add({ durationSeconds, roundingSeconds, gapSeconds, own }: TimedFragment): void {
    if (this.#start !== null) this.#stated += gapSeconds;
    this.#start ??= own.startSeconds;
    this.#end = own.startSeconds + own.durationSeconds;
    this.#stated += durationSeconds ?? own.durationSeconds;
    this.#rounding += roundingSeconds;
    this.#sample = Math.max(this.#sample, own.sampleSeconds);
  }

  /** Returns why the durations before a fragment are those of other media: some players place it by them. */
  problemOfDrift({ own, gapSeconds }: TimedFragment): string | null {
    if (this.#start === null) return null;
    const drift = own.startSeconds - this.#start - this.#stated - gapSeconds;
    // Both may begin with pictures that are shown before their key frame, by which packagers count.
    if (Math.abs(drift) <= 2 * shiftOf(own) + this.#rounding) return null;
    const apart = toThousandths(Math.abs(drift));
    return `the durations stated before it are ${apart} s ${drift > 0 ? 'shorter' : 'longer'} than the media`;
  }

  /** Returns why players end before the media do, or begin what follows too early: they go by the stated durations. */
  problemAtEnd(): string | null {
    if (this.cutSeconds <= Math.max(MAX_SHIFT_SECONDS, this.#sample)) return null;
    return `the durations stated up to its end are ${toThousandths(this.cutSeconds)} s shorter than the media`;
  }

  /** Returns why the time of day is not that of the media: some players place fragments by it. */
  problemOfDate(fragment: TimedFragment): string | null {
    const date = dateShift(fragment);
    this.#date ??= date;
    if (date === null || this.#date === null) return null;
    const apart = Math.abs(date - this.#date);
    if (apart <= Math.max(shiftOf(fragment.own), fragment.own.durationSeconds / 2)) return null;
    return `its time of day is ${toThousandths(apart)} s off that of what plays before it`;
  }
}

/** Returns true where a fragment stands behind another one in the playlist, and was signed behind it. */
function follows(before: TimedFragment, { init, position, own }: TimedFragment): boolean {
  return init === before.init && position === before.position + 1 && own.position === before.own.position + 1;
}

/** Returns why a stated duration is not that of a fragment: players skip what lasts no time, and stop where media ends early. */
function problemOfDuration({ durationSeconds: stated, roundingSeconds, own }: TimedFragment): string | null {
  const { durationSeconds } = own;
  if (stated === null) return null;
  const tolerated = Math.max(durationSeconds / 2, roundingSeconds, shiftOf(own));
  if (stated > 0 && Math.abs(stated - durationSeconds) <= tolerated) return null;
  return `the playlist gives it ${toThousandths(stated)} s, and it lasts ${toThousandths(durationSeconds)} s`;
}

/** Returns why a segment does not stand where its media are: players show it at the time of these, and leave out by that time. */
function problemOfPlace({ mediaSeconds, averageSeconds, window, own }: TimedFragment): string | null {
  if (mediaSeconds === null) return problemOfAverage(averageSeconds, window, own);
  const moved = mediaSeconds - own.startSeconds;
  if (Math.abs(moved) <= shiftOf(own)) return null;
  return `the playlist places it ${toThousandths(Math.abs(moved))} s ${moved > 0 ? 'behind' : 'before'} its own start`;
}

/** Returns why players do not load a segment: by the average duration it begins behind the end of its period. */
function problemOfAverage(
  averageSeconds: number | null,
  window: TimedFragment['window'],
  { startSeconds, durationSeconds }: SignedTimes,
): string | null {
  if (averageSeconds === null || window === null || window.endSeconds === null) return null;
  const shown = Math.min(window.endSeconds - startSeconds, durationSeconds);
  if (window.startSeconds + averageSeconds < window.endSeconds - MAX_SHIFT_SECONDS || shown <= MAX_SHIFT_SECONDS)
    return null;
  return `by the average duration it begins behind the end of its period, which shows ${toThousandths(shown)} s of it`;
}

function picturesIn(fragments: readonly TimedFragment[]): PictureSections {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { own, section } of fragments) {
    if (own.isOfPictures) [first, last] = [Math.min(first, section), Math.max(last, section)];
  }
  return { first, last };
}

/** The first and the last section of a playlist that has pictures; infinite where none has. */
interface PictureSections {
  readonly first: number;
  readonly last: number;
}

/**
 * Returns the seconds that a period shows less of a fragment than it holds, at its start and at its end. Packagers begin and end
 * presentations with the pictures: sound before the first of them, and behind the last, is not counted.
 */
function cutByWindow(
  { window, own, section }: TimedFragment,
  { first, last }: PictureSections,
): { before: number; behind: number } {
  if (window === null) return { before: 0, behind: 0 };
  const before = own.isOfPictures || section !== first ? window.startSeconds - own.startSeconds : 0;
  const isCounted = window.endSeconds !== null && (own.isOfPictures || section !== last);
  return { before, behind: isCounted ? own.startSeconds + own.durationSeconds - (window.endSeconds ?? 0) : 0 };
}

/** Returns why a period shows less of a fragment than it holds. */
function problemOfWindow(fragment: TimedFragment, pictures: PictureSections): string | null {
  const { before, behind } = cutByWindow(fragment, pictures);
  const shift = shiftOf(fragment.own);
  if (before > shift) return `its period begins ${toThousandths(before)} s behind its start`;
  return behind > shift ? `its period ends ${toThousandths(behind)} s before its end` : null;
}

/** Sums what periods leave out of the fragments of one representation, beside a sample of each. */
class CutByPeriods {
  #seconds = 0;

  /** Adds a fragment, and returns why they leave out too much. */
  problemWith(fragment: TimedFragment, pictures: PictureSections): string | null {
    const { before, behind } = cutByWindow(fragment, pictures);
    for (const cut of [before, behind]) this.#seconds += Math.max(cut - fragment.own.sampleSeconds, 0);
    if (this.#seconds <= MAX_SHIFT_SECONDS) return null;
    return `the periods up to its own leave out ${toThousandths(this.#seconds)} s of what they show`;
  }
}

/** Returns the seconds by which a fragment may be cut or moved. */
function shiftOf({ sampleSeconds }: FragmentTimes): number {
  return Math.max(MAX_SHIFT_SECONDS, sampleSeconds);
}

/** Returns why a discontinuity stands, or is missing, before a fragment: players keep time without one, and begin anew at one. */
function problemOfJump(before: TimedFragment, fragment: TimedFragment): string | null {
  const { own, section } = fragment;
  // Another init segment is a discontinuity of its own, and so is what was not signed to follow.
  if (!follows(before, fragment)) return null;
  const jump = own.startSeconds - before.own.startSeconds - before.own.durationSeconds;
  const isContinuous = Math.abs(jump) <= shiftOf(own);
  // Packagers begin encryption, and change its key, at a discontinuity.
  const hasOtherKey = fragment.key !== before.key;
  if (section !== before.section && isContinuous && !hasOtherKey)
    return 'a discontinuity stands before it, and the media go on';
  if (section !== before.section || jump >= -own.durationSeconds / 2) return null;
  return `its media begin ${toThousandths(-jump)} s before the end of what plays before it, without a discontinuity`;
}

/** Finds representations of one period and one init segment that hold parts of its media: players play one of them. */
function partsBeside(sequence: readonly TimedFragment[]): Problem[] {
  return [...Map.groupBy(sequence, ({ section }) => section).values()].flatMap((inPeriod) => {
    const firsts = inPeriod.flatMap(({ position }, index) => (position === 0 ? [index] : []));
    const [whole, ...others] = firsts.map((start, rank) => extentOf(inPeriod.slice(start, firsts[rank + 1])));
    const part = others.find(({ startSeconds, endSeconds, at }) => {
      const apart = [startSeconds - (whole?.startSeconds ?? 0), endSeconds - (whole?.endSeconds ?? 0)];
      return apart.some((seconds) => Math.abs(seconds) > shiftOf(at.own));
    });
    if (part === undefined) return [];
    return [{ at: part.at, problem: 'another representation of its period holds another part of the same media' }];
  });
}

function extentOf(fragments: readonly TimedFragment[]): {
  at: TimedFragment;
  startSeconds: number;
  endSeconds: number;
} {
  const [at, last] = [itemAt(fragments, 0), itemAt(fragments, fragments.length - 1)];
  return { at, startSeconds: at.own.startSeconds, endSeconds: last.own.startSeconds + last.own.durationSeconds };
}

/** Seconds by which clocks may differ: packagers leave out what encoders put before sound (5,186 samples at most). */
const MAX_CLOCKS_APART_SECONDS = 0.125;

/** A representation in a period, beside the one that the others are compared with. */
interface Beside {
  /** Its first fragment. */
  readonly at: TimedFragment;
  /** Seconds between the presentation offsets of both. */
  readonly offset: number;
  /** Seconds between these, where each counts from the first fragment that was signed; not a number where that is not there. */
  readonly offsetFromOrigin: number;
}

/**
 * Finds representations that play earlier or later than what plays beside them. The presentation offsets of a period are those of one
 * clock, or of clocks that each begin with the signed media of their representation; through all periods it is the same.
 */
function clocksApart(sequences: readonly (readonly TimedFragment[])[]): Problem[] {
  const originOf = new Map(
    sequences.map((sequence) => [
      sequence,
      sequence.find(({ own }) => own.position === 0)?.own.startSeconds ?? Number.NaN,
    ]),
  );
  const firsts = sequences.flatMap((sequence) =>
    sequence.filter(({ position }) => position === 0).map((at) => ({ at, sequence })),
  );
  const pairs = new Map<string, Beside[]>();
  for (const beside of Map.groupBy(firsts, ({ at }) => at.section).values()) {
    const reference = beside.find(({ at }) => at.own.isOfPictures) ?? beside[0];
    for (const { at, sequence } of beside) {
      if (reference === undefined || reference.sequence === sequence) continue;
      const offset = (at.window?.startSeconds ?? 0) - (reference.at.window?.startSeconds ?? 0);
      const origins = (originOf.get(sequence) ?? 0) - (originOf.get(reference.sequence) ?? 0);
      const key = [reference.sequence, sequence].map((each) => sequences.indexOf(each)).join();
      const periods = pairs.get(key) ?? [];
      pairs.set(key, periods);
      periods.push({ at, offset, offsetFromOrigin: offset - origins });
    }
  }
  return [...pairs.values()].flatMap((periods) => {
    const apart = (of: (beside: Beside) => number) =>
      periods.find((each) => !(Math.abs(of(each)) <= MAX_CLOCKS_APART_SECONDS));
    const [byOffset, byOrigin] = [apart(({ offset }) => offset), apart(({ offsetFromOrigin }) => offsetFromOrigin)];
    if (byOffset === undefined || byOrigin === undefined) return [];
    const seconds = toThousandths(Math.abs(byOffset.offset));
    return [{ at: byOffset.at, problem: `its presentation offset is ${seconds} s off that of what plays beside it` }];
  });
}

function dateShift({ dateSeconds, own }: TimedFragment): number | null {
  return dateSeconds === null ? null : dateSeconds - own.startSeconds;
}

/** Seconds by the playlist and the number of the section that they are of. */
type OfSections = Map<string, Map<number, number>>;

/** Finds the playlists that offer what states times of day by which some players play one later than the other. */
function datesApart(choices: readonly Choice[], listings: readonly TimedListing[]): FoundInPlaylist[] {
  const dated: OfSections = new Map();
  for (const { playlist, fragments } of listings) {
    const dates = dated.get(playlist) ?? new Map<number, number>();
    dated.set(playlist, dates);
    for (const fragment of areInOrder(fragments) ? fragments : []) {
      const shift = dateShift(fragment);
      if (shift !== null && !dates.has(fragment.section)) dates.set(fragment.section, shift);
    }
  }
  // Players change between all that a playlist offers, and go by times of day.
  const offered = [...Map.groupBy(choices, ({ playlist }) => playlist).values()].flatMap(([first, ...others]) =>
    first === undefined ? [] : [{ ...first, played: [first, ...others].flatMap(({ played }) => played) }],
  );
  return playedApart(offered, dated, (seconds) => `the times of day of what it offers are ${seconds} s apart`);
}

/** Finds the playlists of HLS that play together, and whose sections are of different parts of the signed media. */
function sectionsApart(choices: readonly Choice[], listings: readonly TimedListing[]): FoundInPlaylist[] {
  const starts: OfSections = new Map();
  for (const [playlist, own] of Map.groupBy(listings, (listing) => listing.playlist)) {
    const ofSections = new Map<number, number>();
    for (const { section, window, own: times } of own.flatMap(({ fragments }) => fragments)) {
      const start = Math.min(ofSections.get(section) ?? Number.POSITIVE_INFINITY, times.startSeconds);
      if (window === null) ofSections.set(section, start);
    }
    const first = [...ofSections.keys()].reduce((least, section) => Math.min(least, section), Number.POSITIVE_INFINITY);
    const origin = ofSections.get(first) ?? 0;
    starts.set(playlist, new Map([...ofSections].map(([section, start]) => [section, start - origin])));
  }
  const problem = (seconds: number) => `the media of what plays together behind a discontinuity are ${seconds} s apart`;
  return playedApart(choices, starts, problem);
}

/** Finds choices of playlists that differ in a section. */
function playedApart(
  choices: readonly Choice[],
  values: OfSections,
  problemOf: (seconds: number) => string,
): FoundInPlaylist[] {
  const found = choices.flatMap(({ playlist, line, played }): FoundInPlaylist[] => {
    const together = [...new Set(played.map((each) => each.playlist))].map((path) => values.get(path) ?? new Map());
    const [first, ...others] = together;
    const apart = others.flatMap((each) =>
      [...each].map(([section, seconds]) => Math.abs(seconds - (first?.get(section) ?? seconds))),
    );
    const most = Math.max(0, ...apart);
    if (most <= MAX_PLAYED_APART_SECONDS) return [];
    return [{ playlist, line, kind: 'ambiguous', problem: problemOf(toThousandths(most)) }];
  });
  return onceByLine(found);
}

/** Seconds by which pictures and sound may differ: encoders take times of day from clocks, and cut sections at whole frames. */
const MAX_PLAYED_APART_SECONDS = 0.5;

function toThousandths(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
