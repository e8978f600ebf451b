import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { FolderIndex } from './folder-index.ts';
import { MAX_REPRESENTATIONS, MAX_STATED_FRAGMENTS, refuseBeyond } from './limits.ts';
import { addressByIndex, addressByList } from './mpd-segment-list.ts';
import { addressByTemplate } from './mpd-segment-template.ts';
import type { AddressedSegments, AddressingElements, AddressingTask } from './mpd-timeline.ts';
import { enterBaseUrl, MpdValues } from './mpd-values.ts';
import type { MpdDocument, MpdRepresentation } from './playlist-document.ts';
import { childOf, childrenOf, parseXml, type XmlElement } from './xml-element.ts';

/** A period with its bounds; the end is unknown where neither the period, the next one nor the MPD says it. */
interface TimedPeriod {
  readonly element: XmlElement;
  readonly durationSeconds: number | undefined;
}

/**
 * Reads an MPD and writes out the segments of every representation of every period. Elements that would have to be
 * fetched from elsewhere (xlink) are refused, so an MPD can neither include itself nor another.
 */
export async function readMpd(
  folder: SourceFolder,
  index: FolderIndex,
  path: string,
  text: string,
  signal: AbortSignal,
): Promise<MpdDocument> {
  const root = parseXml(path, text);
  const values = new MpdValues(path, text);
  if (root.name !== 'MPD') throw values.malformed(root, `its root element is ${root.name}, not MPD`);
  refuseRemoteElements(root, values);

  const mpdBase = enterBaseUrl(index.baseOf(path), root, index, values);
  const representations: MpdRepresentation[] = [];
  let segmentCount = 0;
  for (const { element: period, durationSeconds } of timedPeriods(root, values)) {
    const periodBase = enterBaseUrl(mpdBase, period, index, values);
    for (const set of childrenOf(period, 'AdaptationSet')) {
      const setBase = enterBaseUrl(periodBase, set, index, values);
      for (const representation of childrenOf(set, 'Representation')) {
        signal.throwIfAborted();
        const lineage = [root, period, set, representation] as const;
        const addressed = await addressSegments(
          { lineage, values, folder, index, base: setBase, periodSeconds: durationSeconds },
          signal,
        );
        representations.push(describeRepresentation(lineage, addressed, values));
        segmentCount += addressed.segments.length;
        refuseBeyond('representations in one MPD', representations.length, MAX_REPRESENTATIONS);
        refuseBeyond('fragments named in playlists', segmentCount, MAX_STATED_FRAGMENTS);
      }
    }
  }
  return { kind: 'mpd', path, text, root, representations };
}

function describeRepresentation(
  lineage: MpdRepresentation['lineage'],
  addressed: AddressedSegments,
  values: MpdValues,
): MpdRepresentation {
  return { line: values.placeOf(lineage[3]).line, lineage, ...addressed };
}

function timedPeriods(root: XmlElement, values: MpdValues): TimedPeriod[] {
  const periods = childrenOf(root, 'Period');
  const total = values.duration(root, 'mediaPresentationDuration');
  let clock: number | undefined = 0;
  return periods.map((element, index) => {
    const start: number | undefined = values.duration(element, 'start') ?? clock;
    const next = periods[index + 1];
    const end = next === undefined ? total : values.duration(next, 'start');
    const length = end === undefined || start === undefined ? undefined : Math.max(end - start, 0);
    const durationSeconds = values.duration(element, 'duration') ?? length;
    clock = start === undefined || durationSeconds === undefined ? undefined : start + durationSeconds;
    return { element, durationSeconds };
  });
}

function refuseRemoteElements(element: XmlElement, values: MpdValues): void {
  if (element.attributes.has('href')) {
    throw new AppError('PLAYLIST_UNSUPPORTED', {
      ...values.placeOf(element),
      feature: 'An MPD with elements that stand elsewhere (xlink:href)',
      remedy: 'Write them into the MPD.',
    });
  }
  for (const child of element.children) refuseRemoteElements(child, values);
}

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
