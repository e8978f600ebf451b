import type { MediaPart } from '../publication.ts';
import type { FolderIndex } from './folder-index.ts';

/**
 * Whether the segments of an I-frame playlist are fragments, and not frames inside of some: mostly they are byte ranges that
 * end with the frame, and what follows in the file belongs to the fragment.
 */
export function areWholeFragments(parts: readonly MediaPart[], index: FolderIndex): boolean {
  for (const [path, inFile] of Map.groupBy(parts, ({ path }) => path)) {
    const ranges = inFile.flatMap(({ range }) => range ?? []).sort((first, second) => first.offset - second.offset);
    const [first] = ranges;
    if (first === undefined) continue;
    let end = first.offset;
    for (const { offset, length } of ranges) {
      if (offset !== end) return false;
      end += length;
    }
    if (end !== index.sizeOf(path)) return false;
  }
  return true;
}
