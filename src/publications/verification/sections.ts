import { describePart, type MediaPart } from '../media-part.ts';
import type { ListedFragment } from '../playlists/rendition-listings.ts';
import { MAX_SHIFT_SECONDS, type SignedTimes } from './media-times.ts';

/** A fragment with its own times. */
export interface TimedFragment extends ListedFragment {
  readonly init: MediaPart;
  readonly own: SignedTimes;
}

/** A problem of a playlist at one of its fragments. */
export interface Problem {
  readonly at: TimedFragment;
  readonly problem: string;
}

/** Media that play one after the other under different init segments. */
interface Section {
  readonly first: TimedFragment;
  readonly inits: ReadonlySet<MediaPart>;
  startSeconds: number;
  endSeconds: number;
}

function sectionOf(fragments: readonly [TimedFragment, ...TimedFragment[]]): Section {
  const [first] = fragments;
  let [startSeconds, endSeconds] = [Number.POSITIVE_INFINITY, 0];
  for (const { own } of fragments) {
    startSeconds = Math.min(startSeconds, own.startSeconds);
    endSeconds = Math.max(endSeconds, own.startSeconds + own.durationSeconds);
  }
  return { first, inits: new Set(fragments.map(({ init }) => init)), startSeconds, endSeconds };
}

/** Returns the runs of fragments under one init segment. */
export function sectionsByInit(fragments: readonly TimedFragment[]): Section[] {
  const runs: [TimedFragment, ...TimedFragment[]][] = [];
  for (const fragment of fragments) {
    const last = runs.at(-1);
    if (last?.[0].init === fragment.init) last.push(fragment);
    else runs.push([fragment]);
  }
  return runs.map(sectionOf);
}

/** Returns the periods with other init segments than the one before; those with the same are ordered by their map. */
export function sectionsByPeriod(fragments: readonly TimedFragment[]): Section[] {
  const periods = [...Map.groupBy(fragments, ({ section }) => section)].sort(([first], [second]) => first - second);
  const sections: Section[] = [];
  for (const [, [first, ...others]] of periods) {
    if (first === undefined) continue;
    const section = sectionOf([first, ...others]);
    const last = sections.at(-1);
    if (last === undefined || ![...section.inits].some((init) => last.inits.has(init))) sections.push(section);
    else last.endSeconds = Math.max(last.endSeconds, section.endSeconds);
  }
  return sections;
}

/**
 * Returns where a playlist of several sections leaves out what was signed with them, and by its times is the rest of their programme:
 * it fills a gap between them, or goes on at either end where there is none. Null where there is nothing of that.
 */
export function sectionLeftOut(sections: readonly Section[], signed: readonly Section[]): Problem | null {
  const [first, ...others] = sections.toSorted((one, other) => one.startSeconds - other.startSeconds);
  const last = others.at(-1);
  if (first === undefined || last === undefined) return null;
  const { manifest, isOfPictures } = first.first.own;
  const alike = signed.filter(({ first: { own } }) => own.manifest === manifest && own.isOfPictures === isOfPictures);
  let end = first.endSeconds;
  let isWhole = true;
  for (const next of others) {
    const isGap = next.startSeconds - end > MAX_SHIFT_SECONDS;
    const filling = isGap ? firstOfChain(alike, end, next.startSeconds) : undefined;
    if (filling !== undefined) return leftOut(next, filling);
    isWhole &&= !isGap;
    end = Math.max(end, next.endSeconds);
  }
  const further = alike.find((each) => isNear(each.startSeconds, end) || isNear(each.endSeconds, first.startSeconds));
  return isWhole && further !== undefined ? leftOut(first, further) : null;
}

function leftOut({ first: at }: Section, { first: { init } }: Section): Problem {
  return { at, problem: `"${describePart(init)}", which was signed with it and plays beside it, is left out` };
}

/** Returns the first of sections that follow one another from one time to another; undefined where none do. */
function firstOfChain(sections: readonly Section[], from: number, to: number): Section | undefined {
  const reached = [from];
  for (const end of reached) {
    const next = sections.filter(({ startSeconds, endSeconds }) => isNear(startSeconds, end) && endSeconds > end);
    if (next.some(({ endSeconds }) => isNear(endSeconds, to)))
      return sections.find(({ startSeconds }) => isNear(startSeconds, from));
    for (const { endSeconds } of next) if (endSeconds < to && !reached.includes(endSeconds)) reached.push(endSeconds);
  }
  return undefined;
}

function isNear(seconds: number, other: number): boolean {
  return Math.abs(seconds - other) <= MAX_SHIFT_SECONDS;
}

/**
 * Returns whether sections stand in the order of their media times, where these are those of one programme without gaps; the first
 * that does not; `unknown` where each has times of its own.
 */
export function orderOfSections(sections: readonly Section[]): 'signed' | 'unknown' | Problem {
  if (sections.length < 2) return 'signed';
  const byTime = sections.toSorted((first, second) => first.startSeconds - second.startSeconds);
  const areOfOneProgramme = byTime.every(({ startSeconds }, index) => {
    const before = byTime[index - 1];
    return before === undefined || isNear(startSeconds, before.endSeconds);
  });
  if (!areOfOneProgramme) return 'unknown';
  const at = sections.find((section, index) => section !== byTime[index]);
  return at === undefined ? 'signed' : { at: at.first, problem: 'its media belong elsewhere in the programme' };
}
