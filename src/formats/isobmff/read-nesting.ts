import { BOX_HEADER_SIZE_BYTES, Box, type BoxHeader, parseBoxHeader, requireFit } from './box.ts';
import type { OffsetCollector } from './offset-collector.ts';

/** The boxes that readers of C2PA go into, whatever a player makes of them. */
const ENTERED = new Set('moov trak mdia minf stbl edts udta dinf tref mvex meta schi moof traf mfra'.split(' '));
/** Boxes are looked at no deeper; those that are entered lie in each other six deep. */
const MAX_DEPTH = 16;
/** Bound of what is looked at in one box. */
const MAX_CHILDREN = 65_536;
/** Where the first child of a `meta` box stands behind its header: QuickTime leaves out version and flags. */
const META_CHILD_POSITIONS = [0, 4] as const;

/**
 * Refuses a file in which a box ends behind the one around it, also where players pass over that: the official readers
 * then read no manifest in the whole file (tried with tags in `moov/udta/meta`). What they would take for such a box is
 * added to the offsets, to be put right: less than a header at the end, the size of 0 that closes QuickTime's lists, or a
 * size that is none. Players stop there.
 */
export function readNesting(box: Box, offsets: OffsetCollector, depth = 0): void {
  const first = firstChildPosition(box);
  if (first === null || depth > MAX_DEPTH) return;
  let position = box.header.headerSizeBytes + first;
  for (let count = 0; count < MAX_CHILDREN && position < box.bytes.length; count += 1) {
    const header = childHeader(box, position);
    if (header === null) return offsets.addLooseEnd(box, position);
    requireFit(header, box);
    const bytes = box.bytes.subarray(position, position + header.sizeBytes);
    if (ENTERED.has(header.type)) readNesting(new Box(box.fileName, header, bytes, box), offsets, depth + 1);
    position += header.sizeBytes;
  }
}

/** The header of the next box, or null where there is none. */
function childHeader({ bytes, header, endOffset }: Box, position: number): BoxHeader | null {
  if (position + BOX_HEADER_SIZE_BYTES > bytes.length) return null;
  const child = parseBoxHeader(bytes.subarray(position), header.offset + position, endOffset);
  return child.sizeForm === 'to-end' || child.sizeBytes < child.headerSizeBytes ? null : child;
}

/** Null for a `meta` box that does not start with its handler, as it should: how it is to be read is not certain. */
function firstChildPosition({ type, header, bytes }: Box): number | null {
  if (type !== 'meta') return 0;
  return (
    META_CHILD_POSITIONS.find((position) => {
      const typeAt = header.headerSizeBytes + position + 4;
      return bytes.toString('latin1', typeAt, typeAt + 4) === 'hdlr';
    }) ?? null
  );
}
