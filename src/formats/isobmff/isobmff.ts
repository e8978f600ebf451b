import type { FormatHandler } from '../format-handler.ts';
import { placeholderBmffHash } from './bmff-hash.ts';
import { BOX_HEADER_SIZE_BYTES } from './box.ts';
import type { IsobmffLayout } from './layout.ts';
import { leafCountOf, merkleBoundBox } from './merkle-binding.ts';
import { planEmbedding } from './plan-embedding.ts';
import { readLayout } from './read-layout.ts';

/** What files start with: all but `ftyp` are QuickTime from before it, or fragments, which `readLayout` refuses by name. */
const FIRST_TYPES = new Set('ftyp moov mdat wide free skip pnot uuid styp moof sidx'.split(' '));

/**
 * The ISO base media file format (ISO/IEC 14496-12) and QuickTime: MP4, M4V, M4A, MOV, 3GP; whole movies and fragmented
 * ones in a single file.
 */
export const isobmff: FormatHandler<IsobmffLayout> = {
  name: 'isobmff',

  matches(head) {
    if (head.length < BOX_HEADER_SIZE_BYTES) return false;
    return FIRST_TYPES.has(Buffer.from(head.buffer, head.byteOffset, head.length).toString('latin1', 4, 8));
  },

  readLayout,

  placeholderBinding({ boxes }) {
    const mdat = merkleBoundBox(boxes);
    return placeholderBmffHash(mdat === null ? 0 : leafCountOf(mdat));
  },

  planEmbedding,
};
