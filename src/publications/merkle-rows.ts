import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { FRAGMENT_ALGORITHM } from './fragment-algorithm.ts';

/** Lengths of a tree's rows from the leaves up. An odd node at a row's end goes up unchanged (C2PA 2.2, §18.7.2). */
export function rowLengths(leafCount: number): number[] {
  const lengths = [leafCount];
  for (let length = leafCount; length > 1; ) {
    length = Math.ceil(length / 2);
    lengths.push(length);
  }
  return lengths;
}

/** The row `levels` above the leaves, and all below it: `rows[0]` are the leaves. */
export function buildRows(leaves: readonly Uint8Array[], levels: number): (readonly Uint8Array[])[] {
  const rows: (readonly Uint8Array[])[] = [leaves];
  for (let level = 0; level < levels; level += 1) rows.push(rowAbove(rows[level] as readonly Uint8Array[]));
  return rows;
}

function rowAbove(row: readonly Uint8Array[]): Uint8Array[] {
  const above: Uint8Array[] = [];
  for (let index = 0; index < row.length; index += 2) {
    const left = row[index] as Uint8Array;
    const right = row[index + 1];
    above.push(right === undefined ? left : createHash(FRAGMENT_ALGORITHM).update(left).update(right).digest());
  }
  return above;
}

/** The siblings on the way from a leaf to the row `levels` above it; a node without sibling adds none. */
export function proofOf(rows: readonly (readonly Uint8Array[])[], location: number, levels: number): Uint8Array[] {
  const proof: Uint8Array[] = [];
  let index = location;
  for (let level = 0; level < levels; level += 1) {
    const row = rows[level];
    assert(row !== undefined, 'the tree has the row');
    const sibling = row[index ^ 1];
    if (sibling !== undefined) proof.push(sibling);
    index >>= 1;
  }
  return proof;
}

/** How many hashes `proofOf` returns, without the tree. */
export function proofLength(leafCount: number, location: number, levels: number): number {
  let length = 0;
  let index = location;
  let count = leafCount;
  for (let level = 0; level < levels; level += 1) {
    if ((index ^ 1) < count) length += 1;
    index >>= 1;
    count = Math.ceil(count / 2);
  }
  return length;
}
