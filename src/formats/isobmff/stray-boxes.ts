import type { ReadWindow } from '#bytes/byte-source.ts';
import { boxHeadersIn, readWholeBox, type TopLevelBox } from './boxes.ts';
import { isExcludedType, isOfItsType } from './excluded-boxes.ts';
import { isStrayTable } from './media-boxes.ts';

// Top-level boxes that stand where writers do not put them, or hold something else than writers put there.

const MEDIA_TYPES = ['moov', 'moof', 'mdat'];

/** Bytes of an index of fragments: millions of entries. */
const MAX_INDEX_BYTES = 256 * 1024 * 1024;

/** Bytes of a loose container that are searched. */
const MAX_SEARCHED_BYTES = 16 * 1024 * 1024;

/** Containers in which players look for further boxes, though they have no place in a file. */
const LOOSE_CONTAINERS = ['udta', 'edts', 'dinf', 'tref', 'wave', 'gmhd', 'ilst', 'meco'];

/** Tells whether boxes with tables stand in the file itself, or in containers beside the movie. */
export async function haveStrayTables(window: ReadWindow, boxes: readonly TopLevelBox[]): Promise<boolean> {
  for (const { type, offset, sizeBytes, headerSizeBytes } of boxes) {
    if (isStrayTable(type, 'file')) return true;
    if (!LOOSE_CONTAINERS.includes(type)) continue;
    const bytes = await window.read(offset, Math.min(sizeBytes, MAX_SEARCHED_BYTES));
    for (const child of boxHeadersIn(bytes, headerSizeBytes)) if (isStrayTable(child.type, type)) return true;
  }
  return false;
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
): Promise<readonly TopLevelBox[]> {
  const misused: TopLevelBox[] = [];
  for (const box of boxes.filter(({ type }) => isExcludedType(type))) {
    const isRead = box.sizeBytes <= MAX_INDEX_BYTES;
    const { bytes } = isRead ? await readWholeBox(name, window, box, MAX_INDEX_BYTES) : { bytes: Buffer.of() };
    if (!isOfItsType(box, bytes.subarray(box.headerSizeBytes))) misused.push(box);
  }
  return misused;
}
