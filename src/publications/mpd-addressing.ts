import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { FolderIndex } from './folder-index.ts';
import { enterBaseUrl } from './mpd-base-url.ts';
import { addressByIndex } from './mpd-segment-base.ts';
import { addressByTemplate } from './mpd-segment-template.ts';
import { addressByList } from './mpd-segment-list.ts';
import type { MpdRepresentation } from './mpd-document.ts';
import type { MpdValues } from './mpd-values.ts';
import { childOf, type XmlElement } from './xml-element.ts';

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

export type AddressedSegments = Pick<MpdRepresentation, 'addressing' | 'init' | 'segments' | 'index'>;

/** The elements of one addressing scheme that a representation inherits, outermost first; the innermost decides. */
export type AddressingElements = readonly XmlElement[];

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

/** Refuses addressing that describes chunks inside segments rather than segments. */
export function refuseChunks(task: AddressingTask, element: XmlElement): never {
  throw new AppError('PLAYLIST_UNSUPPORTED', {
    ...task.values.placeOf(element),
    feature: 'A low-latency manifest that addresses parts of segments',
    remedy: 'Package-and-sign re-segments such a folder into whole fragments.',
  });
}
