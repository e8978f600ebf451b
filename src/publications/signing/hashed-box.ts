import type { Splice } from '#bytes/splice-plan.ts';
import { isExcludedType, offsetMark } from '#formats/isobmff/bmff-hash.ts';
import type { TopBox } from './top-boxes.ts';

/**
 * One top-level box of an output and how `c2pa.hash.bmff.v3` hashes it: its offset in the output as eight bytes, then
 * the box. `bytes` stands in for the box where it is changed; the size stays.
 */
export function hashedBox(box: TopBox, position: number, bytes: Uint8Array | null): Splice[] {
  const into = isExcludedType(box.type) ? 'none' : 'flat';
  const splice: Splice =
    bytes === null
      ? { kind: 'copy', offset: box.offset, length: box.sizeBytes, into }
      : { kind: 'insert', bytes, into };
  // Fewer than eight bytes at the end are no box and have no offset marker.
  return into === 'none' || box.type === '' ? [splice] : [{ kind: 'mark', bytes: offsetMark(position) }, splice];
}
