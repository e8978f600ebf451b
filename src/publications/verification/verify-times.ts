import { itemAt } from '#errors/assert.ts';
import { describePart } from '../media-part.ts';
import { ambiguous } from '../playlists/playlist-finding.ts';
import type { RenditionListing } from '../playlists/rendition-listings.ts';
import type { Choice } from './choices.ts';
import { type FragmentTimes, MAX_SHIFT_SECONDS, type TimesOf } from './media-times.ts';
import { type FoundInPlaylist, onceByLine } from './playlist-findings.ts';
import {
  orderOfSections,
  type Problem,
  sectionLeftOut,
  sectionsByInit,
  sectionsByPeriod,
  type TimedFragment,
} from './sections.ts';

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

/** Returns the fragments of a listing whose times are known. */
function timed({ init, fragments }: RenditionListing, timesOf: TimesOf): TimedFragment[] {
  if (init === null) return [];
  return fragments.flatMap((fragment) => {
    const own = timesOf(init.part, fragment.part);
    return own === null ? [] : [{ ...fragment, init: init.part, own }];
  });
}

function describe(playlist: string, { at: { line, part, startSeconds }, problem }: Problem): FoundInPlaylist {
  const about = ambiguous(playlist, `"${describePart(part)}": ${problem}`, line);
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
    this.#end = endOf(own);
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

/**
 * Returns why players may decrypt what is not encrypted, as some (GStreamer) do with whole segments, by whatever key they can load, or
 * leave out what they know no key for (dash.js), or end there (hls.js).
 */
function problemOfKey({ key, own }: TimedFragment): string | null {
  if (key === null || own.isEncrypted) return null;
  return 'it is said to be encrypted, and its media are not';
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
  if (mediaSeconds !== null) {
    const moved = mediaSeconds - own.startSeconds;
    if (Math.abs(moved) <= shiftOf(own)) return null;
    return `the playlist places it ${toThousandths(Math.abs(moved))} s ${moved > 0 ? 'behind' : 'before'} its own start`;
  }
  // Players do not load what begins behind the end of its period by the average duration.
  if (averageSeconds === null || window?.endSeconds == null) return null;
  const shown = Math.min(window.endSeconds - own.startSeconds, own.durationSeconds);
  const isLoaded = window.startSeconds + averageSeconds < window.endSeconds - MAX_SHIFT_SECONDS;
  if (isLoaded || shown <= MAX_SHIFT_SECONDS) return null;
  return `by the average duration it begins behind the end of its period, which shows ${toThousandths(shown)} s of it`;
}

/** Returns the first and the last section of a playlist that has pictures; infinite where none has. */
function picturesIn(fragments: readonly TimedFragment[]) {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const { own, section } of fragments) {
    if (own.isOfPictures) [first, last] = [Math.min(first, section), Math.max(last, section)];
  }
  return { first, last };
}

type PictureSections = ReturnType<typeof picturesIn>;

/**
 * Returns the seconds that a period shows less of a fragment than it holds, at its start and at its end. Packagers begin and end
 * presentations with the pictures: sound before the first of them, and behind the last, is not counted.
 */
function cutByWindow({ window, own, section }: TimedFragment, { first, last }: PictureSections) {
  const { startSeconds = Number.NEGATIVE_INFINITY, endSeconds = null } = window ?? {};
  const before = own.isOfPictures || section !== first ? startSeconds - own.startSeconds : 0;
  const end = own.isOfPictures || section !== last ? (endSeconds ?? Number.POSITIVE_INFINITY) : endOf(own);
  return { before, behind: endOf(own) - end };
}

/** Sums what periods leave out of the fragments of one representation, beside a sample of each. */
class CutByPeriods {
  #seconds = 0;

  /** Adds a fragment, and returns why its period shows less of it than it holds, or those so far leave out too much. */
  problemWith(fragment: TimedFragment, pictures: PictureSections): string | null {
    const { before, behind } = cutByWindow(fragment, pictures);
    const shift = shiftOf(fragment.own);
    if (before > shift) return `its period begins ${toThousandths(before)} s behind its start`;
    if (behind > shift) return `its period ends ${toThousandths(behind)} s before its end`;
    for (const cut of [before, behind]) this.#seconds += Math.max(cut - fragment.own.sampleSeconds, 0);
    if (this.#seconds <= MAX_SHIFT_SECONDS) return null;
    return `the periods up to its own leave out ${toThousandths(this.#seconds)} s of what they show`;
  }
}

function endOf({ startSeconds, durationSeconds }: FragmentTimes): number {
  return startSeconds + durationSeconds;
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
  const jump = own.startSeconds - endOf(before.own);
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
    const starts = inPeriod.flatMap(({ position }, index) => (position === 0 ? [index] : []));
    const [whole, ...others] = starts.map((start, rank) => {
      const end = starts[rank + 1] ?? inPeriod.length;
      return { at: itemAt(inPeriod, start), endSeconds: endOf(itemAt(inPeriod, end - 1).own) };
    });
    const part = others.find(({ at, endSeconds }) => {
      const apart = [at.own.startSeconds - (whole?.at.own.startSeconds ?? 0), endSeconds - (whole?.endSeconds ?? 0)];
      return apart.some((seconds) => Math.abs(seconds) > shiftOf(at.own));
    });
    if (part === undefined) return [];
    return [{ at: part.at, problem: 'another representation of its period holds another part of the same media' }];
  });
}

/** Seconds by which clocks may differ: packagers leave out what encoders put before sound (5,186 samples at most). */
const MAX_CLOCKS_APART_SECONDS = 0.125;

/**
 * Finds representations that play earlier or later than what plays beside them. The presentation offsets of a period are those of one
 * clock, or of clocks that each begin with the signed media of their representation; through all periods it is the same.
 */
function clocksApart(sequences: readonly (readonly TimedFragment[])[]): Problem[] {
  const origins = sequences.map((sequence) => sequence.find(({ own }) => own.position === 0)?.own.startSeconds);
  const firsts = sequences.flatMap((sequence, clock) =>
    sequence.filter(({ position }) => position === 0).map((at) => ({ at, clock })),
  );
  const beside = [...Map.groupBy(firsts, ({ at }) => at.section).values()].flatMap((inPeriod) => {
    const reference = inPeriod.find(({ at }) => at.own.isOfPictures) ?? itemAt(inPeriod, 0);
    return inPeriod
      .filter(({ clock }) => clock !== reference.clock)
      .map(({ at, clock }) => {
        const offset = (at.window?.startSeconds ?? 0) - (reference.at.window?.startSeconds ?? 0);
        const originsApart = (origins[clock] ?? Number.NaN) - (origins[reference.clock] ?? Number.NaN);
        return { at, offset, offsetFromOrigin: offset - originsApart, pair: `${reference.clock} ${clock}` };
      });
  });
  return [...Map.groupBy(beside, ({ pair }) => pair).values()].flatMap((periods) => {
    const byOffset = periods.find(({ offset }) => !(Math.abs(offset) <= MAX_CLOCKS_APART_SECONDS));
    // Not a number where the first fragment is not there.
    const isOfOrigins = periods.every(({ offsetFromOrigin }) => Math.abs(offsetFromOrigin) <= MAX_CLOCKS_APART_SECONDS);
    if (byOffset === undefined || isOfOrigins) return [];
    const seconds = toThousandths(Math.abs(byOffset.offset));
    return [{ at: byOffset.at, problem: `its presentation offset is ${seconds} s off that of what plays beside it` }];
  });
}

function dateShift({ dateSeconds, own }: TimedFragment): number | null {
  return dateSeconds === null ? null : dateSeconds - own.startSeconds;
}

/** Seconds by the playlist and the number of the section that they are of. */
type OfSections = ReadonlyMap<string, ReadonlyMap<number, number>>;

function bySection(
  listings: readonly TimedListing[],
  secondsOf: (own: readonly TimedListing[]) => ReadonlyMap<number, number>,
): OfSections {
  return new Map([...Map.groupBy(listings, ({ playlist }) => playlist)].map(([path, own]) => [path, secondsOf(own)]));
}

/** Finds the playlists that offer what states times of day by which some players play one later than the other. */
function datesApart(choices: readonly Choice[], listings: readonly TimedListing[]): FoundInPlaylist[] {
  const dated = bySection(listings, (own) => {
    const inOrder = own.flatMap(({ fragments }) => (areInOrder(fragments) ? fragments : []));
    const shifts = inOrder.map((each) => [each.section, dateShift(each)] as const);
    // The first of each section counts.
    return new Map(shifts.filter((shift): shift is [number, number] => shift[1] !== null).reverse());
  });
  // Players change between all that a playlist offers, and go by times of day.
  const offered = [...Map.groupBy(choices, ({ playlist }) => playlist).values()].map((own) => {
    return { ...itemAt(own, 0), played: own.flatMap(({ played }) => played) };
  });
  return playedApart(offered, dated, (seconds) => `the times of day of what it offers are ${seconds} s apart`);
}

/** Finds the playlists of HLS that play together, and whose sections are of different parts of the signed media. */
function sectionsApart(choices: readonly Choice[], listings: readonly TimedListing[]): FoundInPlaylist[] {
  const starts = bySection(listings, (own) => {
    const played = own.flatMap(({ fragments }) => fragments.filter(({ window }) => window === null));
    const latestFirst = played.toSorted((first, second) => second.own.startSeconds - first.own.startSeconds);
    const startOf = new Map(latestFirst.map(({ section, own: { startSeconds } }) => [section, startSeconds]));
    const [[, origin] = [0, 0]] = [...startOf].sort(([first], [second]) => first - second);
    return new Map([...startOf].map(([section, start]) => [section, start - origin]));
  });
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
    const together = [...new Set(played.map((each) => each.playlist))].map((path) => values.get(path));
    const [first, ...others] = together;
    const apart = others.flatMap((each) =>
      [...(each ?? [])].map(([section, seconds]) => Math.abs(seconds - (first?.get(section) ?? seconds))),
    );
    const most = Math.max(0, ...apart);
    return most <= MAX_PLAYED_APART_SECONDS ? [] : [ambiguous(playlist, problemOf(toThousandths(most)), line)];
  });
  return onceByLine(found);
}

/** Seconds by which pictures and sound may differ: encoders take times of day from clocks, and cut sections at whole frames. */
const MAX_PLAYED_APART_SECONDS = 0.5;

function toThousandths(seconds: number): number {
  return Math.round(seconds * 1000) / 1000;
}
