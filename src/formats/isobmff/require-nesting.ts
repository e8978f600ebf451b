import { BOX_HEADER_SIZE_BYTES, Box, parseBoxHeader, requireFit } from './box.ts';

/** The boxes that readers of C2PA go into, whatever a player makes of them. */
const ENTERED = new Set('trak mdia minf stbl edts udta dinf tref mvex meta schi'.split(' '));
/** Boxes are looked at no deeper; those that are entered lie in each other six deep. */
const MAX_DEPTH = 16;
/** Bound of what is looked at in one box. */
const MAX_CHILDREN = 65_536;
/** Where the first child of a `meta` box stands behind its header: QuickTime leaves out version and flags. */
const META_CHILD_POSITIONS = [0, 4] as const;

/**
 * Refuses a movie in which a box ends behind the one around it, also where players pass over that: the official readers
 * then read no manifest in the whole file (tried with tags in `moov/udta/meta`).
 */
export function requireNesting(box: Box, depth = 0): void {
  const first = firstChildPosition(box);
  if (first === null || depth > MAX_DEPTH) return;
  let position = box.header.headerSizeBytes + first;
  for (let count = 0; count < MAX_CHILDREN && position + BOX_HEADER_SIZE_BYTES <= box.bytes.length; count += 1) {
    const header = parseBoxHeader(box.bytes.subarray(position), box.header.offset + position, box.endOffset);
    // A size of 0 ends QuickTime's lists; one that is smaller than a header is told by whoever needs the box.
    if (header.sizeForm === 'to-end' || header.sizeBytes < header.headerSizeBytes) return;
    requireFit(header, box);
    const bytes = box.bytes.subarray(position, position + header.sizeBytes);
    if (ENTERED.has(header.type)) requireNesting(new Box(box.fileName, header, bytes, box), depth + 1);
    position += header.sizeBytes;
  }
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
