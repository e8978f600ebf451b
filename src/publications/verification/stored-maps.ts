import { hash } from 'node:crypto';
import * as cborg from 'cborg';
import { z } from 'zod';
import { rowLengths } from '#bytes/merkle-tree.ts';
import type { HashAlgorithm } from '#bytes/splice-plan.ts';
import { decodeCbor } from '#provenance/jumbf.ts';

const storedLocation = z.strictObject({
  uniqueId: z.int().nonnegative(),
  localId: z.int().nonnegative(),
  location: z.int().nonnegative(),
  hashes: z.array(z.instanceof(Uint8Array)).nullish(),
});

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

/** A Merkle box as a fragment holds it. */
export type StoredLocation = z.infer<typeof storedLocation>;

/** Fragments that one map may bind; more than a folder may hold files. */
const MAX_MAP_FRAGMENTS = 2 ** 24;

/** Digests of a proof, the levels of a tree over as many fragments as there may be, and the bytes of one (SHA-512). */
const MAX_PROOF_DIGESTS = Math.log2(MAX_MAP_FRAGMENTS);
const MAX_DIGEST_BYTES = 64;

/**
 * Decodes a fragment's Merkle box; undefined where it is malformed, or holds more than a location with its proof: nobody signs what
 * stands in it.
 */
export function readStoredLocation(bytes: Uint8Array): StoredLocation | undefined {
  const { data } = storedLocation.safeParse(decodeCbor(bytes));
  const hashes = data?.hashes ?? [];
  const isPlain = hashes.length <= MAX_PROOF_DIGESTS && hashes.every(({ length }) => length <= MAX_DIGEST_BYTES);
  return data !== undefined && isPlain && cborg.encode(data).length === bytes.length ? data : undefined;
}

/** Returns true when a map holds a row of a tree with `count` leaves. */
export function holdsRow({ count, hashes }: Pick<StoredMap, 'count' | 'hashes'>): boolean {
  return count >= 1 && count <= MAX_MAP_FRAGMENTS && rowLengths(count).includes(hashes.length);
}

/**
 * Verifies a leaf at the location in its Merkle box by the row that the map holds (C2PA 2.2, §18.7.2). Digests that a
 * proof has beyond that row are not looked at, as the official reader does it.
 */
export function isBound(
  leaf: Uint8Array,
  { location, hashes }: StoredLocation,
  map: Pick<StoredMap, 'count' | 'hashes'>,
  algorithm: HashAlgorithm,
): boolean {
  if (location >= map.count) return false;
  let digest = leaf;
  let position = location;
  let used = 0;
  for (let length = map.count; length > 1 && length !== map.hashes.length; length = Math.ceil(length / 2)) {
    const isRight = position % 2 === 1;
    if (isRight || position + 1 < length) {
      const sibling = hashes?.[used];
      if (sibling === undefined) return false;
      used += 1;
      const [left, right] = isRight ? [sibling, digest] : [digest, sibling];
      digest = hash(algorithm, Buffer.concat([left, right]), 'buffer');
    }
    position = Math.floor(position / 2);
  }
  const expected = map.hashes[position];
  return expected !== undefined && Buffer.compare(digest, expected) === 0;
}
