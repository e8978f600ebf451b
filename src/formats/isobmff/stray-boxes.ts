import type { ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { BOX_HEADER_SIZE_BYTES, type Box, readWholeBox, type TopLevelBox } from './boxes.ts';
import { isExcludedType, isOfItsType } from './excluded-boxes.ts';
import type { MediaRange } from './media-boxes.ts';
import { addRandomAccessOffsets, OffsetCollector, type OffsetTable } from './stored-offsets.ts';
import { isOfTables, type StrayTable, strayTableIn } from './table-places.ts';

// Top-level boxes that stand where writers do not put them, or hold something else than writers put there.

const MEDIA_TYPES = ['moov', 'moof', 'mdat'];

/** Bytes of an index of fragments: millions of entries. */
const MAX_INDEX_BYTES = 256 * 1024 * 1024;

/** Bytes of a box beside movie and media that are searched; none that is larger is known. */
const MAX_SEARCHED_BYTES = 64 * 1024 * 1024;

/** Finds a box that leads to samples in one that stands in the file beside movie and media, or is one. Null for none. */
export async function findStrayTable(name: string, window: ReadWindow, box: TopLevelBox): Promise<StrayTable | null> {
  if (isOfTables(box.type) || box.sizeBytes > MAX_SEARCHED_BYTES) return box;
  return strayTableIn(await readWholeBox(name, window, box, MAX_SEARCHED_BYTES));
}

/**
 * Returns the indexes of fragments with entries that lead elsewhere than to fragments, in their order, with more of them than there are
 * fragments, or with two of a track: no hash covers them, so that anybody finds space in such.
 */
export async function strayIndexes(
  name: string,
  window: ReadWindow,
  boxes: readonly TopLevelBox[],
): Promise<readonly TopLevelBox[]> {
  const fragments = new Set(boxes.filter(({ type }) => type === 'moof').map(({ offset }) => offset));
  const stray: TopLevelBox[] = [];
  for (const box of boxes.filter(({ type, sizeBytes }) => type === 'mfra' && sizeBytes <= MAX_INDEX_BYTES)) {
    if (!leadsToFragments(await readWholeBox(name, window, box, MAX_INDEX_BYTES), fragments)) stray.push(box);
  }
  return stray;
}

/**
 * Returns the range of an index of fragments that players find by its size in the last bytes of the file, where it is no box of the file;
 * null for none.
 */
export async function hiddenIndex(
  { sizeBytes }: ByteSource,
  window: ReadWindow,
  boxes: readonly TopLevelBox[],
): Promise<MediaRange | null> {
  if (!boxes.some(({ type }) => type === 'moof')) return null;
  const start = sizeBytes - (await window.read(sizeBytes - 4, 4)).readUInt32BE();
  if (start < 0 || start + BOX_HEADER_SIZE_BYTES > sizeBytes || boxes.some(({ offset }) => offset === start))
    return null;
  const type = (await window.read(start, BOX_HEADER_SIZE_BYTES)).toString('latin1', 4);
  return type === 'mfra' ? { start, end: sizeBytes } : null;
}

function leadsToFragments(mfra: Box, fragments: ReadonlySet<number>): boolean {
  const entries = new OffsetCollector();
  try {
    addRandomAccessOffsets(mfra, entries);
    const tracks = [...mfra.descendants('tfra')].map(({ bytes, header }) =>
      bytes.readUInt32BE(header.headerSizeBytes + 4),
    );
    return new Set(tracks).size === tracks.length && entries.tables.every((table) => isRising(table, fragments));
  } catch (error) {
    // Signing says what is wrong with it.
    if (error instanceof AppError) return true;
    throw error;
  }
}

function isRising({ bytes, widthBytes, strideBytes }: OffsetTable, fragments: ReadonlySet<number>): boolean {
  if (bytes.length > fragments.size * strideBytes) return false;
  let last = -1;
  for (let at = 0; at < bytes.length; at += strideBytes) {
    const offset = widthBytes === 4 ? bytes.readUInt32BE(at) : Number(bytes.readBigUInt64BE(at));
    if (offset < last || !fragments.has(offset)) return false;
    last = offset;
  }
  return true;
}

/** Returns the boxes that hashes leave out, and that stand elsewhere than at the start (`ftyp`) or behind all media (`mfra`). */
export function misplacedIn(boxes: readonly TopLevelBox[]): readonly TopLevelBox[] {
  const last = boxes.findLastIndex(({ type }) => MEDIA_TYPES.includes(type));
  return boxes.filter(({ type }, index) => (type === 'ftyp' && index > 0) || (type === 'mfra' && index < last));
}

/** Returns the boxes that hashes leave out and that hold something else than their type says. */
export async function misusedBoxes(
  name: string,
  window: ReadWindow,
  boxes: readonly TopLevelBox[],
  kind: 'movie' | 'picture',
): Promise<readonly TopLevelBox[]> {
  const misused: TopLevelBox[] = [];
  for (const box of boxes.filter(({ type }) => isExcludedType(type))) {
    const isRead = box.sizeBytes <= MAX_INDEX_BYTES;
    const { bytes } = isRead ? await readWholeBox(name, window, box, MAX_INDEX_BYTES) : { bytes: Buffer.of() };
    if (!isOfItsType(box, bytes.subarray(box.headerSizeBytes), kind)) misused.push(box);
  }
  return misused;
}

/** Free space that players take for the movie of a file without one, and the boxes with which it begins then. */
const SPACE_TYPES = ['free', 'hoov'];
const FIRST_TYPES = ['mvhd', 'cmov'];

/** Returns the free space that begins as a movie does. */
export async function hiddenMovies(window: ReadWindow, boxes: readonly TopLevelBox[]): Promise<readonly TopLevelBox[]> {
  const hidden: TopLevelBox[] = [];
  for (const box of boxes) {
    const { type, offset, sizeBytes, headerSizeBytes } = box;
    if (!SPACE_TYPES.includes(type) || sizeBytes < headerSizeBytes + BOX_HEADER_SIZE_BYTES) continue;
    const first = Buffer.from(await window.read(offset + headerSizeBytes, BOX_HEADER_SIZE_BYTES));
    if (FIRST_TYPES.includes(first.toString('latin1', 4))) hidden.push(box);
  }
  return hidden;
}
