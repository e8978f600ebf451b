import type { Splice } from '#bytes/splice-plan.ts';
import { isExcludedType, offsetMark } from '#formats/isobmff/bmff-hash.ts';
import type { TopBox } from './top-boxes.ts';

/** The bytes of a box as it is written, and as it was read. */
export interface ChangedBox {
  readonly bytes: Uint8Array;
  readonly original: Uint8Array;
}

/**
 * One top-level box of an output and how `c2pa.hash.bmff.v3` hashes it: its offset in the output as eight bytes, then
 * the box. `changed` stands in for the box where it is not copied as it is; the size stays.
 */
export function hashedBox(box: TopBox, position: number, changed: ChangedBox | null): Splice[] {
  const into = isExcludedType(box.type) ? 'none' : 'flat';
  const splice: Splice =
    changed === null
      ? { kind: 'copy', offset: box.offset, length: box.sizeBytes, into }
      : { kind: 'insert', ...changed, into };
  // Fewer than eight bytes at the end are no box and have no offset marker.
  return into === 'none' || box.type === '' ? [splice] : [{ kind: 'mark', bytes: offsetMark(position) }, splice];
}
