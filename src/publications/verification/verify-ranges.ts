import type { SourceFolder } from '#bytes/source-folder.ts';
import { itemAt } from '#errors/assert.ts';
import { listTopBoxes, readerOf, type TopBox, withSource } from '../fragments/top-boxes.ts';
import { type ByteRange, type MediaPart, partKey } from '../media-part.ts';
import { MAX_LISTED_FRAGMENTS } from '../playlists/limits.ts';
import type { ListedOrder, ListedRendition } from './listed-renditions.ts';
import type { Deviation, VerifiedRendition } from './verify-renditions.ts';

/** Boxes of a file of fragments: each has a few. */
const MAX_BOXES = MAX_LISTED_FRAGMENTS * 4;

/**
 * Verifies renditions whose parts are byte ranges of one file that its manifest binds as a whole: by the boxes of that file, each
 * playlist has to play all fragments once and in the order of the file. Throws `FRAGMENT_MALFORMED` and `BMFF_…` where these cannot
 * be read.
 */
export async function verifyRanges(
  folder: SourceFolder,
  path: string,
  renditions: readonly ListedRendition[],
  signal: AbortSignal,
): Promise<VerifiedRendition[]> {
  const file = { path, range: null };
  const boxes = await withSource(folder, file, signal, async (source) => {
    return await listTopBoxes(await readerOf(source, file, signal), MAX_BOXES);
  });
  const media = boxes.filter(({ type }) => type === 'moof' || type === 'mdat');
  const moov = boxes.find(({ type }) => type === 'moov');
  return renditions.map((listed) => {
    const init =
      moov !== undefined && isWithin(moov, listed.init.range) ? [] : [deviationOf('init', listed.init, 'altered')];
    const verified = listed.orders.map((order) => verifyOrder(order, media));
    const deviations = [...init, ...verified.flatMap((each) => each.deviations)];
    const intact = new Set(verified.flatMap((each) => each.intact));
    return { listed, read: null, map: null, intact, deviations };
  });
}

function verifyOrder(order: ListedOrder, media: readonly TopBox[]): { intact: string[]; deviations: Deviation[] } {
  const { playlist, fragments, repeats } = order;
  const played = fragments.map((fragment) => ({ ...fragment, boxes: boxesWithin(media, fragment.part.range) }));
  const covered = new Set(
    played.flatMap(({ boxes: { start, end } }) => Array.from({ length: end - start }, (_, at) => start + at)),
  );
  const deviations: Deviation[] = [];
  const intact: string[] = [];
  let next = 0;
  for (const [index, { part, boxes, startSeconds }] of played.entries()) {
    const isWhole = media[boxes.start]?.type === 'moof' && media[boxes.end - 1]?.type === 'mdat';
    const kind = boxes.start === boxes.end || !isWhole ? 'added' : boxes.start < next ? 'reordered' : null;
    if (kind === null) intact.push(partKey(part));
    else deviations.push({ ...deviationOf('fragment', part, kind), playlist, index, startSeconds });
    next = Math.max(next, boxes.end);
  }
  for (const { part, index, startSeconds } of repeats) {
    deviations.push({ ...deviationOf('fragment', part, 'added'), playlist, index, startSeconds });
  }
  const missing = media.findIndex((_box, at) => !covered.has(at));
  if (missing !== -1) {
    const { path } = fragments[0]?.part ?? { path: '' };
    const { offset, sizeBytes } = itemAt(media, missing);
    const part = { path, range: { offset, length: sizeBytes } };
    deviations.push({ ...deviationOf('fragment', part, 'missing'), playlist, count: media.length - covered.size });
  }
  return { intact, deviations };
}

function deviationOf(part: Deviation['part'], file: MediaPart, kind: Deviation['kind']): Deviation {
  const nowhere = { playlist: null, index: null, signedIndex: null, startSeconds: null, origin: null } as const;
  return { part, kind, count: 1, file, ...nowhere, isOfPlaylist: true };
}

function isWithin({ offset, sizeBytes }: TopBox, range: ByteRange | null): boolean {
  return range === null || (offset >= range.offset && offset + sizeBytes <= range.offset + range.length);
}

/** Returns the positions `[start, end)` of the boxes that lie in a range as wholes. */
function boxesWithin(boxes: readonly TopBox[], range: ByteRange | null): { start: number; end: number } {
  if (range === null) return { start: 0, end: boxes.length };
  const start = firstFrom(boxes, ({ offset }) => offset >= range.offset);
  const end = firstFrom(boxes, ({ offset, sizeBytes }) => offset + sizeBytes > range.offset + range.length);
  return { start, end: Math.max(start, end) };
}

/** Returns the first position from which on all boxes have a property, by halving. */
function firstFrom(boxes: readonly TopBox[], has: (box: TopBox) => boolean): number {
  let [low, high] = [0, boxes.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (has(itemAt(boxes, middle))) high = middle;
    else low = middle + 1;
  }
  return low;
}
