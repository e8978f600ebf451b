import { LEAF_SIZE_BYTES, MDAT_HEAD_SIZE_BYTES } from './bmff-hash.ts';
import type { FileBox } from './file-boxes.ts';

/** From so much media on, a Merkle tree is worth its size in the manifest. */
export const MERKLE_MINIMUM_BYTES = 16 * 1024 * 1024;

/**
 * The one `mdat` box of a large file, which is bound by a Merkle tree: readers then need a fifth of the memory. Null
 * for small files, and for several `mdat` boxes, with which the reference reader fails now and then.
 */
export function merkleBoundBox(boxes: readonly FileBox[]): FileBox | null {
  const [mdat, ...others] = boxes.filter(({ type }) => type === 'mdat');
  if (mdat === undefined || others.length > 0) return null;
  return mdat.sizeBytes - MDAT_HEAD_SIZE_BYTES >= MERKLE_MINIMUM_BYTES ? mdat : null;
}

/** How many leaves the tree over a box has. */
export function leafCountOf(mdat: FileBox): number {
  return Math.ceil((mdat.sizeBytes - MDAT_HEAD_SIZE_BYTES) / LEAF_SIZE_BYTES);
}
