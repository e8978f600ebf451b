import type { FragmentLayout } from './fragment-layout.ts';
import type { TopBox } from './top-boxes.ts';

/** Where things of the source fragment are in the output. */
export interface OutputPositions {
  ofBox(box: TopBox): number;
  /** Of any boundary in the source file. What begins at the moof begins at the Merkle box before it. */
  ofBoundary(offset: number): number;
}

/** Where the boxes of a fragment come to lie behind a Merkle box of that size before its moof. */
export function outputPositions({ boxes, moof }: FragmentLayout, merkleBoxSizeBytes: number): OutputPositions {
  const starts = new Map<TopBox, number>();
  let end = 0;
  for (const box of boxes) {
    if (box === moof) end += merkleBoxSizeBytes;
    starts.set(box, end);
    end += box.sizeBytes;
  }
  const last = boxes.at(-1) as TopBox;
  const shiftAtEnd = end - (last.offset + last.sizeBytes);
  return {
    ofBox: (box) => starts.get(box) as number,
    ofBoundary: (offset) => {
      const box = boxes.find((candidate) => offset < candidate.offset + candidate.sizeBytes);
      if (box === undefined) return offset + shiftAtEnd;
      const start = starts.get(box) as number;
      if (offset <= box.offset) return box === moof ? start - merkleBoxSizeBytes : start;
      return start + (offset - box.offset);
    },
  };
}
