import { partitionPoint } from '#bytes/partition-point.ts';
import { type SourceFolder, withSource } from '#bytes/source-folder.ts';
import { itemAt } from '#errors/assert.ts';
import type { Box } from '#formats/isobmff-boxes.ts';
import { listTopBoxes, type PartReader, readBox, readerOf, type TopBox } from '../fragments/top-boxes.ts';
import { type ByteRange, type MediaPart, partKey } from '../media-part.ts';
import { MAX_LISTED_FRAGMENTS } from '../playlists/limits.ts';
import type { ReadInit } from './choices.ts';
import type { ListedOrder, ListedRendition } from './listed-renditions.ts';
import {
  type FragmentTimes,
  type InitTimes,
  initTimesIn,
  kindsOf,
  type RunTimes,
  runTimesIn,
  type SignedTimes,
  type TimesOf,
  timesOfAll,
} from './media-times.ts';
import { DEVIATION, type Deviation, type VerifiedRendition } from './verify-renditions.ts';

/** Boxes of a file of fragments: each has a few. */
const MAX_BOXES = MAX_LISTED_FRAGMENTS * 4;

/** A box that is read for the times in it, in bytes; those of ten seconds have some kilobytes. */
const MAX_TIMED_BYTES = 4 * 1024 * 1024;

/** Renditions, and when the intact ones play by the boxes in them. */
export interface VerifiedParts {
  readonly renditions: readonly VerifiedRendition[];
  /** Their init segments, with what they hold. */
  readonly inits: readonly ReadInit[];
  readonly timesOf: TimesOf;
}

/**
 * Verifies renditions whose parts are byte ranges of one file that its manifest binds as a whole: by the boxes of that file, each
 * playlist has to play all fragments once and in the order of the file. Throws `FRAGMENT_MALFORMED` and `BMFF_…` where these cannot
 * be read.
 */
export async function verifyRanges(
  folder: SourceFolder,
  path: string,
  listed: readonly ListedRendition[],
  signal: AbortSignal,
): Promise<VerifiedParts> {
  const file = { path, range: null };
  return await withSource(folder, file, signal, async (source) => {
    const reader = await readerOf(source, file, signal);
    const boxes = await listTopBoxes(reader, MAX_BOXES);
    const media = boxes.filter(({ type }) => type === 'moof' || type === 'mdat');
    const moov = boxes.find(({ type }) => type === 'moov');
    const isOfBoxes = alignmentOf(boxes);
    const verified = listed.map(({ init, orders }) => ({
      init: initDeviations(init, path, moov, isOfBoxes),
      orders: orders.map((order) => verifyOrder(order, path, media, isOfBoxes)),
    }));
    const movie = moov === undefined ? null : await readTimed(reader, moov);
    const tracks: InitTimes = movie === null ? new Map() : initTimesIn(movie);
    const times = new Map<string, SignedTimes>();
    for (const { part, moofs, position } of verified.flatMap(({ orders }) => orders.flatMap(({ intact }) => intact))) {
      const own = times.has(partKey(part)) ? null : await readTimes(reader, moofs, tracks);
      if (own !== null) times.set(partKey(part), { ...own, position, manifest: null });
    }
    const renditions = listed.map((rendition, index): VerifiedRendition => {
      const { init, orders } = itemAt(verified, index);
      const intact = new Set(orders.flatMap((each) => each.intact.map(({ part }) => partKey(part))));
      const deviations = [...init, ...orders.flatMap((each) => each.deviations)];
      return { listed: rendition, read: null, map: null, intact, deviations };
    });
    const read = { ...kindsOf(tracks), binding: null, manifest: 0 };
    const inits = listed.map((each) => ({ listed: each, read }));
    return { renditions, inits, timesOf: (_init, part) => times.get(partKey(part)) ?? null };
  });
}

/** Returns when a byte range plays by its boxes, which are read one by one; null where one of them does not say it. */
async function readTimes(
  reader: PartReader,
  moofs: readonly TopBox[],
  tracks: InitTimes,
): Promise<FragmentTimes | null> {
  const runs: RunTimes[] = [];
  for (const moof of moofs) {
    const box = await readTimed(reader, moof);
    const own = box === null ? [] : runTimesIn(box, tracks);
    if (own.length === 0) return null;
    runs.push(...own);
  }
  return timesOfAll(runs);
}

/** Reads a box for its times; null for one that is too large. */
async function readTimed(reader: PartReader, box: TopBox): Promise<Box | null> {
  return box.sizeBytes > MAX_TIMED_BYTES ? null : await readBox(reader, box, MAX_TIMED_BYTES);
}

/** A byte range that is played where it was signed: the `moof` boxes in it, and its position; one more where some are left out before it. */
interface IntactRange {
  readonly part: MediaPart;
  readonly moofs: readonly TopBox[];
  readonly position: number;
}

/** Tells whether a range is one of whole boxes: players read what begins inside of one otherwise than the file has it. */
type RangeTest = (range: ByteRange | null) => boolean;

function alignmentOf(boxes: readonly TopBox[]): RangeTest {
  const starts = new Set(boxes.map(({ offset }) => offset));
  const ends = new Set(boxes.map(({ offset, sizeBytes }) => offset + sizeBytes));
  return (range) => range === null || (starts.has(range.offset) && ends.has(range.offset + range.length));
}

function initDeviations(init: MediaPart, path: string, moov: TopBox | undefined, isOfBoxes: RangeTest): Deviation[] {
  if (init.path !== path) return [deviationOf('init', init, 'missing')];
  const isIntact = moov !== undefined && isWithin(moov, init.range) && isOfBoxes(init.range);
  return isIntact ? [] : [deviationOf('init', init, 'altered')];
}

/** Verifies what a playlist plays of the file at `path`, in which `media` are; a file at another path is not there. */
function verifyOrder(
  order: ListedOrder,
  path: string,
  media: readonly TopBox[],
  isOfBoxes: RangeTest,
): { readonly intact: readonly IntactRange[]; readonly deviations: readonly Deviation[] } {
  const { playlist, fragments, repeats } = order;
  const played = fragments.map((fragment) => {
    const { part } = fragment;
    return { ...fragment, boxes: part.path === path ? boxesWithin(media, part.range) : { start: 0, end: 0 } };
  });
  const covered = new Set(
    played.flatMap(({ boxes: { start, end } }) => Array.from({ length: end - start }, (_, at) => start + at)),
  );
  const deviations: Deviation[] = [];
  const intact: IntactRange[] = [];
  let [next, position] = [0, -1];
  for (const [index, { part, boxes, startSeconds }] of played.entries()) {
    const isWhole = media[boxes.start]?.type === 'moof' && media[boxes.end - 1]?.type === 'mdat';
    const isAdded = boxes.start === boxes.end || !isWhole || !isOfBoxes(part.range);
    const kind = part.path !== path ? 'missing' : isAdded ? 'added' : boxes.start < next ? 'reordered' : null;
    position += boxes.start === next ? 1 : 2;
    const moofs = media.slice(boxes.start, boxes.end).filter(({ type }) => type === 'moof');
    if (kind === null) intact.push({ part, moofs, position });
    else deviations.push({ ...deviationOf('fragment', part, kind), playlist, index, startSeconds });
    next = Math.max(next, boxes.end);
  }
  for (const { part, index, startSeconds } of repeats) {
    deviations.push({ ...deviationOf('fragment', part, 'added'), playlist, index, startSeconds });
  }
  const missing = media.findIndex((_box, at) => !covered.has(at));
  if (missing !== -1) {
    const { offset, sizeBytes } = itemAt(media, missing);
    const part = { path, range: { offset, length: sizeBytes } };
    deviations.push({ ...deviationOf('fragment', part, 'missing'), playlist, count: media.length - covered.size });
  }
  return { intact, deviations };
}

function deviationOf(part: Deviation['part'], file: MediaPart, kind: Deviation['kind']): Deviation {
  return { ...DEVIATION, part, kind, file, startSeconds: null, isOfPlaylist: true };
}

function isWithin({ offset, sizeBytes }: TopBox, range: ByteRange | null): boolean {
  return range === null || (offset >= range.offset && offset + sizeBytes <= range.offset + range.length);
}

/** Returns the positions `[start, end)` of the boxes that lie in a range as wholes. */
function boxesWithin(boxes: readonly TopBox[], range: ByteRange | null): { start: number; end: number } {
  if (range === null) return { start: 0, end: boxes.length };
  const start = partitionPoint(boxes, ({ offset }) => offset >= range.offset);
  const end = partitionPoint(boxes, ({ offset, sizeBytes }) => offset + sizeBytes > range.offset + range.length);
  return { start, end: Math.max(start, end) };
}
