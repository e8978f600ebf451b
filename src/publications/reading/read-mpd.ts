import type { SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { AddressedSegments } from './addressing-task.ts';
import type { FolderIndex } from './folder-index.ts';
import { addressSegments } from './mpd-addressing.ts';
import { enterBaseUrl } from './mpd-base-url.ts';
import type { MpdDocument, MpdRepresentation } from './mpd-document.ts';
import { MpdValues } from './mpd-values.ts';
import { REPRESENTATIONS_MAX_COUNT, refuseBeyond, STATED_FRAGMENTS_MAX_COUNT } from './publication-limits.ts';
import { childrenOf, parseXml, type XmlElement } from './xml-element.ts';

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
        refuseBeyond('representations in one MPD', representations.length, REPRESENTATIONS_MAX_COUNT);
        refuseBeyond('fragments named in playlists', segmentCount, STATED_FRAGMENTS_MAX_COUNT);
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
