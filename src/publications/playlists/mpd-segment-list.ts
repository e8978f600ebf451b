import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { withSource } from '#bytes/source-folder.ts';
import { BOX_HEADER_SIZE_BYTES } from '#formats/isobmff-boxes.ts';
import type { ByteRange, MediaPart } from '../media-part.ts';
import {
  type AddressedSegments,
  type AddressingTask,
  expandTimeline,
  innermostAttribute,
  innermostChild,
  timescaleOf,
} from './mpd-timeline.ts';
import type { MpdSegment } from './playlist-document.ts';
import { findSegmentIndex, readSegmentIndex, type SegmentIndex } from './sidx.ts';
import { childrenOf, type XmlElement } from './xml-element.ts';

/** Returns the segments of a representation that a SegmentList names (ISO/IEC 23009-1, §5.3.9.3). */
export function addressByList(task: AddressingTask): AddressedSegments {
  return { addressing: 'list', init: readInitialization(task), segments: readSegments(task), adjacent: [] };
}

/**
 * Returns the Initialization element that applies; without @sourceURL it means bytes of the file that BaseURL names.
 */
export function readInitialization(task: AddressingTask): MediaPart | null {
  const element = innermostChild(task.elements, 'Initialization');
  return element === undefined ? null : readPart(task, element, 'sourceURL', 'range');
}

function readSegments(task: AddressingTask): MpdSegment[] {
  const { elements } = task;
  const list = elements.map((element) => childrenOf(element, 'SegmentURL')).findLast((urls) => urls.length > 0) ?? [];
  const timeline = innermostChild(elements, 'SegmentTimeline');
  const times = timeline && expandTimeline(task, timeline).times;
  const duration = task.values.inherited(elements, 'duration');
  const common = duration === undefined ? null : Number(duration) / Number(timescaleOf(task));
  return list.map((element) => {
    const { mediaSeconds = null, durationSeconds = common } = times?.next().value ?? {};
    return { part: readPart(task, element, 'media', 'mediaRange'), mediaSeconds, durationSeconds };
  });
}

function readPart(task: AddressingTask, element: XmlElement, reference: string, range: string): MediaPart {
  const position = task.values.positionOf(element);
  const path = task.index.locate(task.base, element.attributes.get(reference) ?? '', position);
  return task.index.partAt(path, task.values.byteRange(element, range));
}

/**
 * Returns the segments of a representation that is one file: SegmentBase, or nothing but a BaseURL. The file's segment
 * index says where they are (ISO/IEC 23009-1, §5.3.9.2).
 */
export async function addressByIndex(task: AddressingTask, signal: AbortSignal): Promise<AddressedSegments> {
  const path = task.index.tryLocate(task.base, '', task.position);
  const whole = { addressing: 'none', init: null, segments: [], adjacent: [] } as const;
  if (path === undefined) return whole;
  if (!isMp4(task)) return { ...whole, path };
  return await withSource(task.folder, { path }, signal, async (source) => {
    const found = statedIndexRange(task) ?? (await findSegmentIndex(source, signal));
    if (found === null) return { ...whole, path };
    const index = await readSegmentIndex(source, found, signal);
    // Without a stated init segment, the bytes before the index are it.
    const init = readInitialization(task) ?? { path, range: { offset: 0, length: found.offset } };
    return {
      addressing: 'base',
      init: init.path === path ? await withFileType(upTo(found, init), source, signal) : init,
      segments: segmentsOf(path, index),
      adjacent: [],
      index,
    };
  });
}

function segmentsOf(path: string, { timescale, startTicks, subsegments }: SegmentIndex): MpdSegment[] {
  let clock = Number(startTicks);
  return subsegments.map(({ offset, length, durationTicks }) => {
    const mediaSeconds = clock / timescale;
    clock += durationTicks;
    return { part: { path, range: { offset, length } }, mediaSeconds, durationSeconds: durationTicks / timescale };
  });
}

function isMp4({ lineage }: AddressingTask): boolean {
  const mimeType = innermostAttribute(lineage, 'mimeType');
  return mimeType === undefined || mimeType.toLowerCase().endsWith('/mp4');
}

function statedIndexRange({ values, elements }: AddressingTask): ByteRange | null {
  const element = elements.findLast((candidate) => candidate.attributes.has('indexRange'));
  return element === undefined ? null : values.byteRange(element, 'indexRange');
}

/**
 * Ends an init segment where the index begins: some writers count its last byte one too far. A range that reaches less than a
 * box header into the index gives that part to the index.
 */
function upTo(index: ByteRange, init: MediaPart): MediaPart {
  const { offset, length } = init.range ?? { offset: 0, length: 0 };
  const passedBytes = offset + length - index.offset;
  if (passedBytes <= 0 || passedBytes >= BOX_HEADER_SIZE_BYTES) return init;
  return { path: init.path, range: { offset, length: length - passedBytes } };
}

/**
 * Extends an init segment to the start of the file: some packagers begin it behind the file's `ftyp` box, which is part
 * of it (ISO/IEC 14496-12 §8.16.2).
 */
async function withFileType(init: MediaPart, source: ByteSource, signal: AbortSignal): Promise<MediaPart> {
  const { offset, length } = init.range ?? { offset: 0, length: 0 };
  if (offset < 8) return init;
  const header = await readRange(source, 0, 8, signal);
  const startsFile = header.toString('latin1', 4, 8) === 'ftyp' && header.readUInt32BE(0) === offset;
  return startsFile ? { path: init.path, range: { offset: 0, length: offset + length } } : init;
}
