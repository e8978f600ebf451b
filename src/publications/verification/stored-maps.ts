import { hash } from 'node:crypto';
import { isWholeProof, rowLengths } from '#bytes/merkle-tree.ts';
import type { HashAlgorithm } from '#bytes/splice-plan.ts';
import type { MerkleBox } from '#formats/isobmff-boxes.ts';

/** A Merkle map as a manifest holds it. */
export interface StoredMap {
  readonly uniqueId: number;
  readonly localId: number;
  /** The number of fragments that it binds. */
  readonly count: number;
  readonly initHash: Uint8Array;
  /** A row of the tree over the fragments: as long as one of `rowLengths(count)`. */
  readonly hashes: readonly Uint8Array[];
}

/** Fragments that one map may bind; more than a folder may hold files. */
const MAX_MAP_FRAGMENTS = 2 ** 24;

/** Returns true when a map holds a row of a tree with `count` leaves. */
export function holdsRow({ count, hashes }: Pick<StoredMap, 'count' | 'hashes'>): boolean {
  return count >= 1 && count <= MAX_MAP_FRAGMENTS && rowLengths(count).includes(hashes.length);
}

/** Verifies a leaf at the location in its Merkle box by the row that the map holds (C2PA 2.2, §18.7.2). */
export function isBound(
  leaf: Uint8Array,
  stored: MerkleBox,
  map: Pick<StoredMap, 'count' | 'hashes'>,
  algorithm: HashAlgorithm,
): boolean {
  if (!isWholeProof(stored, map)) return false;
  const siblings = stored.hashes.values();
  let digest = leaf;
  let position = stored.location;
  for (let length = map.count; length > 1 && length !== map.hashes.length; length = Math.ceil(length / 2)) {
    const isRight = position % 2 === 1;
    if (isRight || position + 1 < length) {
      const sibling = siblings.next().value as Uint8Array;
      const [left, right] = isRight ? [sibling, digest] : [digest, sibling];
      digest = hash(algorithm, Buffer.concat([left, right]), 'buffer');
    }
    position = Math.floor(position / 2);
  }
  const expected = map.hashes[position];
  return expected !== undefined && Buffer.compare(digest, expected) === 0;
}
