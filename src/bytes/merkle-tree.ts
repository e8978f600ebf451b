import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import type { HashAlgorithm } from './splice-plan.ts';

/** Level of a Merkle tree, as digests from left to right. */
type MerkleRow = readonly Uint8Array[];

/** Returns the lengths of a tree's rows, from the leaves up to the root. */
export function rowLengths(leafCount: number): number[] {
  const lengths = [leafCount];
  for (let length = leafCount; length > 1; ) {
    length = Math.ceil(length / 2);
    lengths.push(length);
  }
  return lengths;
}

/**
 * Returns the rows of a tree from the leaves, `rows[0]`, to `levels` above them. Neighbours are hashed in pairs; an odd
 * node at the end of a row moves up unchanged (C2PA 2.2, §18.7.2).
 */
export function buildRows(leaves: MerkleRow, levels: number, algorithm: HashAlgorithm): MerkleRow[] {
  const rows: MerkleRow[] = [leaves];
  for (let level = 0; level < levels; level += 1) rows.push(rowAbove(rowAt(rows, level), algorithm));
  return rows;
}

/**
 * Returns the proof of a leaf: the siblings on the path to the row `levels` above it. A level where the node has no
 * sibling adds none. `leafIndex` counts from zero; `rows` come from `buildRows`, at least `levels` of them.
 */
export function proofOf(rows: readonly MerkleRow[], leafIndex: number, levels: number): Uint8Array[] {
  const proof: Uint8Array[] = [];
  let index = leafIndex;
  for (let level = 0; level < levels; level += 1) {
    const sibling = rowAt(rows, level)[index ^ 1];
    if (sibling !== undefined) proof.push(sibling);
    index >>= 1;
  }
  return proof;
}

/** Returns the number of digests that `proofOf` returns, without building the tree. */
export function proofLength(leafCount: number, leafIndex: number, levels: number): number {
  let length = 0;
  let index = leafIndex;
  let count = leafCount;
  for (let level = 0; level < levels; level += 1) {
    if ((index ^ 1) < count) length += 1;
    index >>= 1;
    count = Math.ceil(count / 2);
  }
  return length;
}

/**
 * Tells whether the proof of a leaf has as many digests as `proofOf` returns, each as long as those of the row that it leads to: that of
 * the tree over `count` leaves which is as long as `hashes` of the map.
 */
export function isWholeProof(
  { location, hashes }: { readonly location: number; readonly hashes: MerkleRow },
  map: { readonly count: number; readonly hashes: MerkleRow },
): boolean {
  const levels = location < map.count ? rowLengths(map.count).indexOf(map.hashes.length) : -1;
  const isOfMap = hashes.every(({ length }) => length === map.hashes[0]?.length);
  return levels !== -1 && isOfMap && hashes.length === proofLength(map.count, location, levels);
}

function rowAbove(row: MerkleRow, algorithm: HashAlgorithm): MerkleRow {
  const above: Uint8Array[] = [];
  for (let index = 0; index < row.length; index += 2) {
    const [left, right] = row.slice(index, index + 2);
    assert(left !== undefined, 'the index lies in the row');
    above.push(right === undefined ? left : createHash(algorithm).update(left).update(right).digest());
  }
  return above;
}

function rowAt(rows: readonly MerkleRow[], level: number): MerkleRow {
  const row = rows.at(level);
  assert(row !== undefined, 'the tree has the row');
  return row;
}
