import type { MediaPart } from '../publication.ts';
import type { AddressedSegments, AddressingElements, AddressingTask } from './addressing-task.ts';
import type { MpdSegment } from './mpd-document.ts';
import { expandTimeline, timelineOf, timescaleOf } from './segment-timing.ts';
import { childOf, childrenOf, type XmlElement } from './xml-element.ts';

/** The segments of a representation that a SegmentList names (ISO/IEC 23009-1, §5.3.9.3). */
export function addressByList(task: AddressingTask, elements: AddressingElements): AddressedSegments {
  return { addressing: 'list', init: readInitialization(task, elements), segments: readSegments(task, elements) };
}

/** The Initialization element that applies; without @sourceURL it means bytes of the file that BaseURL names. */
export function readInitialization(task: AddressingTask, elements: AddressingElements): MediaPart | null {
  const element = elements
    .map((candidate) => childOf(candidate, 'Initialization'))
    .findLast((found) => found !== undefined);
  return element === undefined ? null : readPart(task, element, 'sourceURL', 'range');
}

function readSegments(task: AddressingTask, elements: AddressingElements): MpdSegment[] {
  const list = elements.map((element) => childrenOf(element, 'SegmentURL')).findLast((urls) => urls.length > 0) ?? [];
  const timeline = timelineOf(elements);
  const times = timeline === undefined ? [] : expandTimeline(task, elements, timeline);
  const duration = task.values.inherited(elements, 'duration');
  const common = duration === undefined ? null : Number(duration) / Number(timescaleOf(task, elements));
  return list.map((element, index) => ({
    part: readPart(task, element, 'media', 'mediaRange'),
    durationSeconds: times[index]?.durationSeconds ?? common,
  }));
}

function readPart(task: AddressingTask, element: XmlElement, reference: string, range: string): MediaPart {
  const place = task.values.placeOf(element);
  const path = task.index.locate(task.base, element.attributes.get(reference) ?? task.base.href, place);
  return task.index.partAt(path, task.values.byteRange(element, range));
}
