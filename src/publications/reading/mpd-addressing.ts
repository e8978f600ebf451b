import type { AddressedSegments, AddressingElements, AddressingTask } from './addressing-task.ts';
import { enterBaseUrl } from './mpd-base-url.ts';
import { addressByIndex } from './mpd-segment-base.ts';
import { addressByList } from './mpd-segment-list.ts';
import { addressByTemplate } from './mpd-segment-template.ts';
import { childOf, type XmlElement } from './xml-element.ts';

/** Writes out the segments of one representation, by whichever addressing scheme its innermost element uses. */
export async function addressSegments(task: AddressingTask, signal: AbortSignal): Promise<AddressedSegments> {
  const representation = task.lineage[3];
  const inner = { ...task, base: enterBaseUrl(task.base, representation, task.index, task.values) };
  const scheme = schemeOf(task.lineage);
  switch (scheme) {
    case 'SegmentTemplate':
      return addressByTemplate(inner, inheritedElements(task.lineage, scheme));
    case 'SegmentList':
      return addressByList(inner, inheritedElements(task.lineage, scheme));
    case 'SegmentBase':
      return await addressByIndex(inner, inheritedElements(task.lineage, scheme), signal);
    case undefined:
      return await addressByIndex(inner, [], signal);
  }
}

type Scheme = 'SegmentTemplate' | 'SegmentList' | 'SegmentBase';

function schemeOf(lineage: readonly XmlElement[]): Scheme | undefined {
  for (const element of [...lineage].reverse()) {
    for (const scheme of ['SegmentTemplate', 'SegmentList', 'SegmentBase'] as const) {
      if (childOf(element, scheme) !== undefined) return scheme;
    }
  }
  return undefined;
}

function inheritedElements(lineage: readonly XmlElement[], scheme: Scheme): AddressingElements {
  return lineage.map((element) => childOf(element, scheme)).filter((element) => element !== undefined);
}
