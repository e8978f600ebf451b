import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { PlaylistPosition } from '#errors/entry.ts';
import type { Base, FolderIndex } from './folder-index.ts';
import { MAX_LISTED_FRAGMENTS } from './limits.ts';
import type { MpdValues } from './mpd-values.ts';
import type { MpdRepresentation } from './playlist-document.ts';
import { childOf, childrenOf, type XmlElement } from './xml-element.ts';

/** A representation whose segments are to be written out. */
export interface AddressingTask {
  readonly lineage: MpdRepresentation['lineage'];
  /** The elements of its addressing scheme that it inherits, outermost first; the innermost decides. */
  readonly elements: readonly XmlElement[];
  readonly values: MpdValues;
  /** The position of the representation in the MPD. */
  readonly position: PlaylistPosition;
  readonly folder: SourceFolder;
  readonly index: FolderIndex;
  /** The base of references inside the representation. */
  readonly base: Base;
  /** Undefined where the MPD does not say how long the period is. */
  readonly periodSeconds: number | undefined;
  /** The seconds by which some players count segments: in a period that they take for the whole MPD, those of all. */
  readonly countedSeconds: number;
}

export type AddressedSegments = Pick<
  MpdRepresentation,
  'addressing' | 'init' | 'segments' | 'adjacent' | 'path' | 'index'
>;

/** Returns the element that decides, of a representation that has one. */
export function innermost({ elements }: AddressingTask): XmlElement {
  return itemAt(elements, elements.length - 1);
}

/** Returns the child of that name of the innermost element that has one. */
export function innermostChild(elements: readonly XmlElement[], name: string): XmlElement | undefined {
  return elements.map((element) => childOf(element, name)).findLast((child) => child !== undefined);
}

/** Returns the attribute of that name of the innermost element that has one. */
export function innermostAttribute(elements: readonly XmlElement[], name: string): string | undefined {
  return elements.map(({ attributes }) => attributes.get(name)).findLast((value) => value !== undefined);
}

/** Refuses addressing that describes chunks inside segments rather than segments. Throws `PLAYLIST_UNSUPPORTED`. */
export function refuseChunks(task: AddressingTask, element: XmlElement): never {
  throw new AppError('PLAYLIST_UNSUPPORTED', {
    ...task.values.positionOf(element),
    feature: 'A low-latency manifest that addresses parts of segments',
    remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
  });
}

/** When a segment starts on its representation's timescale, and how long it is. */
interface SegmentTime {
  readonly time: bigint;
  /** The same in seconds. */
  readonly mediaSeconds: number;
  readonly durationSeconds: number;
  /** True when the segment may not exist: the end of a period is often a matter of rounding. */
  readonly mayBeMissing: boolean;
}

/** Ticks per second; 1 where nothing says otherwise. */
export function timescaleOf(task: AddressingTask): bigint {
  const timescale = task.values.inherited(task.elements, 'timescale') ?? 1n;
  if (timescale === 0n) throw task.values.malformed(innermost(task), '@timescale is 0');
  return timescale;
}

/** Segments of one length behind each other, as an `S` of a SegmentTimeline stands for. */
interface SegmentRun {
  readonly start: bigint;
  readonly duration: bigint;
  readonly durationSeconds: number;
  readonly count: bigint;
  /** The number of segments that must exist. */
  readonly certain: bigint;
}

/** The segments of a representation: how many there are, and when each starts, made when it is asked for. */
export interface SegmentTimes {
  readonly count: bigint;
  /** The times at which one more segment before the first, and one behind the last, would start; the first may be negative. */
  readonly before: bigint;
  readonly behind: bigint;
  /** Ticks of the last segment, and of each further one. */
  readonly lastDuration: bigint;
  readonly times: Generator<SegmentTime, undefined>;
}

/** Returns the segments of runs. Those from the end of the period on may be missing. */
export function segmentTimes(runs: readonly SegmentRun[], end?: bigint): SegmentTimes {
  const [first, last] = [runs[0], runs.at(-1)];
  return {
    count: runs.reduce((sum, { count }) => sum + count, 0n),
    before: first === undefined ? -1n : first.start - first.duration,
    behind: last === undefined ? 0n : last.start + last.count * last.duration,
    lastDuration: last?.duration ?? 0n,
    times: timesOf(runs, end),
  };
}

function* timesOf(runs: readonly SegmentRun[], end: bigint | undefined): SegmentTimes['times'] {
  for (const { start, duration, durationSeconds, count, certain } of runs) {
    for (let index = 0n; index < count; index += 1n) {
      const time = start + index * duration;
      const mediaSeconds = (Number(time) / Number(duration)) * durationSeconds;
      const mayBeMissing = index >= certain || (end !== undefined && time >= end);
      yield { time, mediaSeconds, durationSeconds, mayBeMissing };
    }
  }
}

/**
 * Reads a SegmentTimeline (§5.3.9.6): `S@r` repeats, and a negative one repeats until the next `S` or the period's end. Counts all
 * segments, and refuses too many, before the first one is returned.
 */
export function expandTimeline(task: AddressingTask, timeline: XmlElement): SegmentTimes {
  const { values } = task;
  const timescale = timescaleOf(task);
  const end = periodEnd(task);
  const entries = childrenOf(timeline, 'S');
  const runs: SegmentRun[] = [];
  let total = 0n;
  let clock = 0n;
  for (const [position, entry] of entries.entries()) {
    if ((values.integer(entry, 'k') ?? 1n) > 1n) refuseChunks(task, entry);
    const duration = values.integer(entry, 'd');
    if (duration === undefined || duration === 0n) throw values.malformed(entry, 'S has no @d');
    clock = values.integer(entry, 't') ?? clock;
    const { count, certain } = repetition(task, entry, { start: clock, duration, end }, entries[position + 1]);
    total += count;
    if (total > MAX_LISTED_FRAGMENTS) {
      throw values.malformed(entry, `the timeline has more than ${MAX_LISTED_FRAGMENTS} segments`);
    }
    values.countAddresses(Number(count));
    runs.push({ start: clock, duration, durationSeconds: Number(duration) / Number(timescale), count, certain });
    clock += count * duration;
  }
  return segmentTimes(runs, end);
}

/** When an `S` starts, how long its segments are, and when its period ends, on the representation's timescale. */
interface EntryTiming {
  readonly start: bigint;
  readonly duration: bigint;
  readonly end: bigint | undefined;
}

/** Returns the number of segments that an `S` stands for, and the number of them that must exist. */
function repetition(
  { values, index }: AddressingTask,
  entry: XmlElement,
  { start, duration, end }: EntryTiming,
  next: XmlElement | undefined,
): { count: bigint; certain: bigint } {
  const repeat = entry.attributes.get('r') ?? '0';
  if (!/^-?\d{1,9}$/.test(repeat)) throw values.malformed(entry, '@r is no integer');
  if (!repeat.startsWith('-')) return { count: BigInt(repeat) + 1n, certain: BigInt(repeat) + 1n };
  const until = (next === undefined ? undefined : values.integer(next, 't')) ?? end;
  if (until === undefined) {
    // A live stream goes on for as long as it does: there are at most as many segments as files, where those are known.
    if (index.fileCount > 0) return { count: BigInt(index.fileCount), certain: 1n };
    throw values.malformed(entry, '@r is negative, and nothing says where the repetition ends');
  }
  const certain = until <= start ? 0n : (until - start) / duration;
  const count = until <= start ? 0n : (until - start + duration - 1n) / duration;
  return { count, certain: certain === 0n || next !== undefined ? count : certain };
}

/** Returns the durations of those `S` of a timeline that repeat until the next one, or the end of the period. */
export function openDurations({ values }: AddressingTask, timeline: XmlElement): bigint[] {
  const open = childrenOf(timeline, 'S').filter(({ attributes }) => attributes.get('r')?.startsWith('-') === true);
  return open.flatMap((entry) => values.integer(entry, 'd') ?? []);
}

/** Returns the period's end on the representation's timescale (§5.3.9.6.1). */
function periodEnd(task: AddressingTask): bigint | undefined {
  if (task.periodSeconds === undefined) return undefined;
  const offset = task.values.inherited(task.elements, 'presentationTimeOffset') ?? 0n;
  return offset + BigInt(Math.round(task.periodSeconds * Number(timescaleOf(task))));
}
