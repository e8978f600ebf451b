import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { buildRows, proofLength, proofOf, rowLengths } from '#bytes/merkle-tree.ts';

const hash = (...parts: Uint8Array[]): Buffer => {
  const digest = createHash('sha256');
  for (const part of parts) digest.update(part);
  return digest.digest();
};
const leavesOf = (count: number): Buffer[] => Array.from({ length: count }, (_, index) => hash(Buffer.from([index])));

describe('a Merkle tree', () => {
  test('of one leaf is that leaf', () => {
    const [leaf] = leavesOf(1);
    assert.ok(leaf);
    assert.deepEqual(rowLengths(1), [1]);
    assert.deepEqual(proofOf([[leaf]], 0, 0), []);
  });

  test('hashes pairs and promotes an odd node unchanged', () => {
    const [a, b, c, d, e] = leavesOf(5) as [Buffer, Buffer, Buffer, Buffer, Buffer];
    const left = hash(hash(a, b), hash(c, d));
    assert.deepEqual(buildRows([a, b, c, d, e], 3, 'sha256'), [
      [a, b, c, d, e],
      [hash(a, b), hash(c, d), e],
      [left, e],
      [hash(left, e)],
    ]);
  });

  test('uses the algorithm that it is given', () => {
    const [a, b] = leavesOf(2) as [Buffer, Buffer];
    assert.deepEqual(buildRows([a, b], 1, 'sha512')[1], [createHash('sha512').update(a).update(b).digest()]);
  });

  test('says how long its rows are without being built', () => {
    assert.deepEqual(rowLengths(1), [1]);
    assert.deepEqual(rowLengths(1145), [1145, 573, 287, 144, 72, 36, 18, 9, 5, 3, 2, 1]);
  });

  test('gives every leaf a proof that leads to the row above it', () => {
    const shapes = fc.integer({ min: 1, max: 70 }).chain((count) =>
      fc.record({
        count: fc.constant(count),
        index: fc.nat(count - 1),
        levels: fc.nat(rowLengths(count).length - 1),
      }),
    );
    fc.assert(
      fc.property(shapes, ({ count, index, levels }) => {
        const rows = buildRows(leavesOf(count), levels, 'sha256');
        const proof = proofOf(rows, index, levels);
        assert.equal(proof.length, proofLength(count, index, levels));
        assert.deepEqual(
          climb(rows[0]?.[index] as Buffer, proof, count, index, levels),
          rows[levels]?.[index >> levels],
        );
      }),
    );
  });
});

/** Verifies a proof as a reader does (C2PA 2.2, §18.7.2), independently of the code under test. */
function climb(leaf: Buffer, proof: readonly Uint8Array[], count: number, index: number, levels: number): Uint8Array {
  let digest: Uint8Array = leaf;
  const siblings = [...proof];
  for (let level = 0, length = count, at = index; level < levels; level += 1) {
    const isRight = at % 2 === 1;
    const isAlone = !isRight && at === length - 1;
    if (!isAlone) {
      const sibling = siblings.shift() as Uint8Array;
      digest = isRight ? hash(sibling, digest) : hash(digest, sibling);
    }
    at = Math.floor(at / 2);
    length = Math.ceil(length / 2);
  }
  assert.equal(siblings.length, 0, 'the whole proof was used');
  return digest;
}
