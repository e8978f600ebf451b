import type { HashAlgorithm } from '#bytes/splice-plan.ts';
import type { HardBinding } from '../hard-binding.ts';
import { C2PA_BOX_ID } from './boxes.ts';
import { EXCLUDED_TYPES } from './excluded-boxes.ts';

/** Hash of files, fragments, init segments and the trees over them; readers are fastest at it, and all know it. */
export const BMFF_HASH_ALGORITHM: HashAlgorithm = 'sha256';

/** Exclusions of every hash: C2PA's own boxes and the two that the specification requires. */
export const BMFF_EXCLUSIONS: readonly object[] = [
  exclusion('/uuid', { data: [{ offset: 8, value: [...C2PA_BOX_ID] }] }),
  ...EXCLUDED_TYPES.map((type) => exclusion(`/${type}`)),
];

/** Returns an exclusion with unused fields as null: the SDK refuses one that lacks a field. */
export function exclusion(xpath: string, fields: object = {}): object {
  return { xpath, length: null, data: null, subset: null, version: null, flags: null, exact: null, ...fields };
}

/** Returns the hard binding `c2pa.hash.bmff.v3` (C2PA 2.2, §18.7): a flat hash or null, and the maps of Merkle trees. */
export function bmffHash(
  flat: Uint8Array | null,
  merkle: readonly object[],
  exclusions: readonly object[] = BMFF_EXCLUSIONS,
): HardBinding {
  const hash = flat === null ? null : [...flat];
  const maps = merkle.length > 0 ? { merkle } : {};
  return {
    label: 'c2pa.hash.bmff.v3',
    data: { exclusions, alg: BMFF_HASH_ALGORITHM, hash, ...maps, name: 'jumbf manifest' },
  };
}

/**
 * Returns the offset marker that is hashed before each top-level box that is not excluded: 8 bytes (C2PA 2.2, §18.7.3).
 */
export function offsetMark(position: number): Buffer {
  const mark = Buffer.alloc(8);
  mark.writeBigUInt64BE(BigInt(position));
  return mark;
}
