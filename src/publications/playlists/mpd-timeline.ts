import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { FolderIndex } from './folder-index.ts';
import { MAX_LISTED_FRAGMENTS } from './limits.ts';
import type { MpdValues } from './mpd-values.ts';
import type { MpdRepresentation } from './playlist-document.ts';
import { childOf, childrenOf, type XmlElement } from './xml-element.ts';

/** A representation whose segments are to be written out. */
export interface AddressingTask {
  readonly lineage: MpdRepresentation['lineage'];
  readonly values: MpdValues;
  readonly folder: SourceFolder;
  readonly index: FolderIndex;
  /** The base of references inside the adaptation set. */
  readonly base: URL;
  /** Undefined where the MPD does not say how long the period is. */
  readonly periodSeconds: number | undefined;
}

export type AddressedSegments = Pick<MpdRepresentation, 'addressing' | 'init' | 'segments' | 'path' | 'index'>;

/** The elements of one addressing scheme that a representation inherits, outermost first; the innermost decides. */
export type AddressingElements = readonly XmlElement[];

/** Returns the element that decides. A representation has at least one. */
export function innermost(elements: AddressingElements): XmlElement {
  return itemAt(elements, elements.length - 1);
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
export interface SegmentTime {
  readonly time: bigint;
  readonly durationSeconds: number;
  /** True when the segment may not exist: the end of a period is often a matter of rounding. */
  readonly mayBeMissing: boolean;
}

/** Ticks per second; 1 where nothing says otherwise. */
export function timescaleOf({ values }: AddressingTask, elements: AddressingElements): bigint {
  const timescale = values.inherited(elements, 'timescale') ?? 1n;
  if (timescale === 0n) throw values.malformed(innermost(elements), '@timescale is 0');
  return timescale;
}

/** Returns the SegmentTimeline that applies, if there is one. */
export function timelineOf(elements: AddressingElements): XmlElement | undefined {
  return elements.map((element) => childOf(element, 'SegmentTimeline')).findLast((timeline) => timeline !== undefined);
}

/** Writes out a SegmentTimeline (§5.3.9.6): `S@r` repeats, and a negative one repeats until the next `S` or the period's end. */
export function expandTimeline(
  task: AddressingTask,
  elements: AddressingElements,
  timeline: XmlElement,
): SegmentTime[] {
  const { values } = task;
  const timescale = timescaleOf(task, elements);
  const end = periodEnd(task, elements);
  const entries = childrenOf(timeline, 'S');
  const times: SegmentTime[] = [];
  let clock = 0n;
  for (const [position, entry] of entries.entries()) {
    if ((values.integer(entry, 'k') ?? 1n) > 1n) refuseChunks(task, entry);
    const duration = values.integer(entry, 'd');
    if (duration === undefined || duration === 0n) throw values.malformed(entry, 'S has no @d');
    clock = values.integer(entry, 't') ?? clock;
    const { count, certain } = repetition(task, entry, { start: clock, duration, end }, entries[position + 1]);
    if (BigInt(times.length) + count > MAX_LISTED_FRAGMENTS) {
      throw values.malformed(entry, `the timeline has more than ${MAX_LISTED_FRAGMENTS} segments`);
    }
    values.countAddresses(Number(count));
    const durationSeconds = Number(duration) / Number(timescale);
    for (let repeated = 0n; repeated < count; repeated += 1n) {
      const mayBeMissing = repeated >= certain || (end !== undefined && clock >= end);
      times.push({ time: clock, durationSeconds, mayBeMissing });
      clock += duration;
    }
  }
  return times;
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

/** Returns the period's end on the representation's timescale (§5.3.9.6.1). */
function periodEnd(task: AddressingTask, elements: AddressingElements): bigint | undefined {
  if (task.periodSeconds === undefined) return undefined;
  const offset = task.values.inherited(elements, 'presentationTimeOffset') ?? 0n;
  return offset + BigInt(Math.round(task.periodSeconds * Number(timescaleOf(task, elements))));
}
