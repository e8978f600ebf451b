import { compareNaturally } from './file-names.ts';
import { MAX_LISTED_FRAGMENTS, MAX_MISSING_IN_A_ROW } from './limits.ts';
import { readInitialization } from './mpd-segment-list.ts';
import {
  type AddressedSegments,
  type AddressingTask,
  expandTimeline,
  innermost,
  innermostAttribute,
  innermostChild,
  openDurations,
  refuseChunks,
  type SegmentTimes,
  segmentTimes,
  timescaleOf,
} from './mpd-timeline.ts';
import { filesLike, PLACEHOLDER } from './mpd-values.ts';
import type { AdjacentFile, MpdSegment } from './playlist-document.ts';

/** Returns the segments of a representation that a SegmentTemplate addresses (ISO/IEC 23009-1, §5.3.9.4). */
export function addressByTemplate(task: AddressingTask): AddressedSegments {
  const media = innermostAttribute(task.elements, 'media');
  const template = innermost(task);
  if (media === undefined) throw task.values.malformed(template, 'SegmentTemplate has no @media');
  if (media.includes('$SubNumber')) refuseChunks(task, template);
  const init = readInit(task);
  const { segments, adjacent } = readSegments(task, media);
  // Some name the init segment as number 0.
  const listed = new Set([init?.path, ...segments.map(({ part }) => part.path)]);
  return { addressing: 'template', init, segments, adjacent: adjacent.filter(({ path }) => !listed.has(path)) };
}

function readInit(task: AddressingTask): AddressedSegments['init'] {
  const template = innermostAttribute(task.elements, 'initialization');
  return template === undefined ? readInitialization(task) : { path: locate(task, template, {}), range: null };
}

function readSegments(task: AddressingTask, media: string): Pick<AddressedSegments, 'segments' | 'adjacent'> {
  const timeline = innermostChild(task.elements, 'SegmentTimeline');
  if (timeline !== undefined) {
    const times = expandTimeline(task, timeline);
    const open = task.periodSeconds === undefined ? [] : openDurations(task, timeline);
    // ffmpeg counts from 0 without a startNumber, and passes over as many times as it says.
    const isCountedBySome = media.includes('$Time') === (startNumberOf(task) !== undefined);
    const adjacent = open.length > 0 || isCountedBySome ? adjacentFiles(task, media, times, open) : [];
    return { segments: locateAll(task, media, times), adjacent };
  }
  const duration = task.values.inherited(task.elements, 'duration');
  if (duration === undefined || duration === 0n) {
    const part = { path: locate(task, media, { Number: startNumber(task) }), range: null };
    const segments = [{ part, mediaSeconds: null, durationSeconds: task.periodSeconds ?? null }];
    return {
      segments,
      adjacent: adjacentFiles(task, media, { count: 1n, before: -1n, behind: -1n, lastDuration: 0n }, []),
    };
  }
  const durationSeconds = Number(duration) / Number(timescaleOf(task));
  const count = countByDuration(task, durationSeconds);
  if (count === undefined) return { segments: matchingFiles(task, media, durationSeconds), adjacent: [] };
  task.values.countAddresses(count);
  const certain = BigInt(count > 1 ? count - 1 : count);
  const run = { start: 0n, duration, durationSeconds, count: BigInt(count), certain };
  const times = segmentTimes([run]);
  const segments = locateAll(task, media, times).map((each) => ({ ...each, mediaSeconds: null }));
  return { segments, adjacent: adjacentFiles(task, media, times, [duration]) };
}

/** Further segments that players may count in a folder that cannot be listed: each is asked for. */
const MAX_ASKED_FURTHER = 100;

/**
 * Returns the files that the template names directly before its first segment, and behind its last one. If a duration says how many
 * segments there are, players round it differently, and some count as many as fill all periods, or those whole seconds. `open` are the
 * durations that segments repeat by: some players take the times of these to be multiples of them.
 */
function adjacentFiles(
  task: AddressingTask,
  media: string,
  { count, before, behind, lastDuration }: Omit<SegmentTimes, 'times'>,
  open: readonly bigint[],
): AdjacentFile[] {
  if (!isEnumerating(media)) return [];
  const first = startNumber(task);
  const durations = open.length === 0 ? [lastDuration] : open;
  const shortest = Math.min(...durations.map(Number)) / Number(timescaleOf(task));
  const counted = shortest === 0 ? 0 : task.countedSeconds / Math.max(Math.floor(shortest), 1);
  const further = Math.min(
    Math.max(Math.ceil(counted) - Number(count), 0) + 1,
    task.index.isUnlisted ? MAX_ASKED_FURTHER : MAX_LISTED_FRAGMENTS,
  );
  const multiples = media.includes('$Time') && task.countedSeconds > 0 ? Number(count) + further : 0;
  task.values.countAddresses(further + multiples * open.length);
  const beside = [
    { distance: -1, number: first - 1n, time: before },
    ...Array.from({ length: further }, (_, index) => {
      return {
        distance: index + 1,
        number: first + count + BigInt(index),
        time: behind + BigInt(index) * lastDuration,
      };
    }),
    ...open.flatMap((duration) =>
      Array.from({ length: multiples }, (_, index) => {
        return { distance: Number.NaN, number: first + BigInt(index), time: BigInt(index) * duration };
      }),
    ),
  ];
  return beside.flatMap(({ distance, number, time }) => {
    if ((number < 0n && media.includes('$Number')) || (time < 0n && media.includes('$Time'))) return [];
    const reference = fill(task, media, { Number: number, Time: time });
    const path = task.index.tryLocate(task.base, reference, task.position);
    return path === undefined ? [] : [{ path, distance }];
  });
}

function startNumberOf({ values, elements }: AddressingTask): bigint | undefined {
  return values.inherited(elements, 'startNumber');
}

function startNumber(task: AddressingTask): bigint {
  return startNumberOf(task) ?? 1n;
}

/** Returns the number of segments that fill the period; undefined where its length or start is open, as in a live window. */
function countByDuration(task: AddressingTask, durationSeconds: number): number | undefined {
  const endNumber = task.values.inherited(task.elements, 'endNumber');
  const isLive = task.lineage[0].attributes.get('type') === 'dynamic';
  if (endNumber === undefined && (isLive || task.periodSeconds === undefined)) return undefined;
  const count =
    endNumber === undefined
      ? Math.max(1, Math.ceil((task.periodSeconds as number) / durationSeconds - 1e-6))
      : Number(endNumber - startNumber(task) + 1n);
  if (count > MAX_LISTED_FRAGMENTS) {
    throw task.values.malformed(innermost(task), `it addresses more than ${MAX_LISTED_FRAGMENTS} segments`);
  }
  return Math.max(count, 0);
}

function locateAll(task: AddressingTask, media: string, { count, times }: SegmentTimes): MpdSegment[] {
  if (count > 1n && !isEnumerating(media)) {
    throw task.values.malformed(innermost(task), '@media names the same file for every segment');
  }
  const segments: MpdSegment[] = [];
  let missing = 0;
  let number = startNumber(task);
  for (const { time, mediaSeconds, durationSeconds, mayBeMissing } of times) {
    const reference = fill(task, media, { Number: number, Time: time });
    number += 1n;
    const path = mayBeMissing
      ? task.index.tryLocate(task.base, reference, task.position)
      : task.index.locate(task.base, reference, task.position);
    missing = path === undefined ? missing + 1 : 0;
    if (path === undefined) task.values.countMissing(1);
    else segments.push({ part: { path, range: null }, mediaSeconds, durationSeconds });
    if (missing === MAX_MISSING_IN_A_ROW) break;
  }
  return segments;
}

/** Returns every file of the folder that the template could name, in the order of its number or time. */
function matchingFiles(task: AddressingTask, media: string, durationSeconds: number): MpdSegment[] {
  task.values.countSearch(task.index);
  const reference = fill(task, media, { Number: BigInt(PLACEHOLDER), Time: BigInt(PLACEHOLDER) });
  const found = filesLike(task.base, reference, task.position, task.index);
  return found
    .filter(({ text }) => /^\d+$/.test(text))
    .sort((first, second) => compareNaturally(first.path, second.path))
    .map(({ path }) => ({ part: { path, range: null }, mediaSeconds: null, durationSeconds }));
}

function locate(task: AddressingTask, template: string, values: Partial<TemplateValues>): string {
  return task.index.locate(task.base, fill(task, template, values), task.position);
}

function fill(task: AddressingTask, template: string, values: Partial<TemplateValues>): string {
  const representation = task.lineage[3];
  const bandwidth = representation.attributes.get('bandwidth');
  const filled = fillTemplate(template, {
    RepresentationID: representation.attributes.get('id'),
    // Shaka takes 0 for none, and leaves the identifier as it is.
    Bandwidth: Number(bandwidth) === 0 ? undefined : bandwidth,
    ...values,
  });
  if (filled === undefined)
    throw task.values.malformed(
      representation,
      'its segment template has an identifier that is unknown, or has no value',
    );
  return filled;
}

/** Values of a template's identifiers in one representation (ISO/IEC 23009-1, §5.3.9.4.4). */
interface TemplateValues {
  readonly RepresentationID: string | undefined;
  readonly Bandwidth: string | undefined;
  readonly Number?: bigint;
  readonly Time?: bigint;
}

/** `%0[width]d` beyond this many digits is nobody's file name. */
const MAX_TEMPLATE_WIDTH = 32;

/** Fills a segment template, or undefined where it is malformed or asks for a value that is not there. */
function fillTemplate(template: string, values: TemplateValues): string | undefined {
  let failed = false;
  const filled = template.replace(/\$([^$]*)\$/g, (_, identifier: string) => {
    const text = textOf(identifier, values);
    if (text === undefined) failed = true;
    return text ?? '';
  });
  return failed ? undefined : filled;
}

function textOf(identifier: string, values: TemplateValues): string | undefined {
  if (identifier === '') return '$';
  const match = /^(RepresentationID|Bandwidth|Number|Time)(?:%0(\d{1,3})d)?$/.exec(identifier);
  if (match === null) return undefined;
  const value = values[match[1] as keyof TemplateValues];
  const width = Number(match[2] ?? 1);
  return value === undefined || width > MAX_TEMPLATE_WIDTH ? undefined : String(value).padStart(width, '0');
}

/** Returns true when the template distinguishes segments, by number or by time. */
function isEnumerating(template: string): boolean {
  return /\$(?:Number|Time)(?:%0\d{1,3}d)?\$/.test(template);
}
