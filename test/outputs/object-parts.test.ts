import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Splice } from '#bytes/splice-plan.ts';
import { copyRunsOf } from '#bytes/splice-plan.ts';
import {
  growingParts,
  MAX_OBJECT_BYTES,
  type ObjectPart,
  type PartLayout,
  planParts,
} from '#outputs/s3/object-parts.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

describe('the parts of an object', () => {
  test('are one for a small object, and none for an empty one', () => {
    assert.deepEqual(partsOf(planParts(8 * MIB, []), 8 * MIB), [{ number: 1, position: 0, length: 8 * MIB }]);
    assert.equal(planParts(8 * MIB, []).isSingle, true);
    assert.equal(planParts(0, []).isSingle, true);
    assert.equal(planParts(8 * MIB + 1, []).isSingle, false);
  });

  test('have one size where all are written, the last excepted, as some servers ask for', () => {
    const lengths = partsOf(planParts(20 * MIB + 3, []), 20 * MIB + 3).map(({ length }) => length);
    assert.deepEqual(lengths, [8 * MIB, 8 * MIB, 4 * MIB + 3]);
  });

  test('grow with the object, up to the largest that there can be', () => {
    for (const sizeBytes of [79 * GIB, 500 * GIB, MAX_OBJECT_BYTES]) {
      const parts = partsOf(planParts(sizeBytes, []), sizeBytes);
      assert.ok(parts.length <= 10_000);
      assertWhole(parts, sizeBytes);
    }
  });

  test('are copied where a run is long, the neighbours taking of it what they lack', () => {
    const runs = [{ position: 2 * MIB, offset: 7, length: 200 * MIB }];
    const parts = partsOf(planParts(202 * MIB + 1, runs), 202 * MIB + 1);
    assert.deepEqual(parts, [
      { number: 1, position: 0, length: 5 * MIB },
      { number: 2, position: 5 * MIB, length: 8 * MIB, copiedFrom: 7 + 3 * MIB },
      { number: 3, position: 13 * MIB, length: 64 * MIB, copiedFrom: 7 + 11 * MIB },
      { number: 4, position: 77 * MIB, length: 64 * MIB, copiedFrom: 7 + 75 * MIB },
      { number: 5, position: 141 * MIB, length: 61 * MIB, copiedFrom: 7 + 139 * MIB },
      { number: 6, position: 202 * MIB, length: 1 },
    ]);
  });

  test('cover every object within the bounds of S3, whatever is copied', () => {
    const gap = fc.integer({ min: 0, max: 12 * MIB });
    const length = fc.oneof(fc.integer({ min: 1, max: 40 * MIB }), fc.integer({ min: 1, max: 900 * GIB }));
    fc.assert(
      fc.property(fc.array(fc.tuple(gap, length), { maxLength: 6 }), gap, (pieces, tail) => {
        const splices: Splice[] = [];
        let offset = 0;
        for (const [inserted, copied] of pieces) {
          splices.push({ kind: 'hole', length: inserted });
          splices.push({ kind: 'copy', offset, length: copied, into: 'none' });
          offset += copied + 3;
        }
        splices.push({ kind: 'hole', length: tail });
        const sizeBytes = splices.reduce((sum, splice) => sum + (splice.kind === 'mark' ? 0 : lengthOf(splice)), 0);
        const runs = copyRunsOf({ splices, hashing: { algorithm: 'sha256' } });
        const parts = partsOf(planParts(sizeBytes, runs), sizeBytes);
        assertWhole(parts, sizeBytes);
        for (const { position, length: partLength, copiedFrom } of parts) {
          if (copiedFrom === undefined) continue;
          const run = runs.find((each) => position >= each.position && position < each.position + each.length);
          assert.ok(run !== undefined && position + partLength <= run.position + run.length);
          assert.equal(copiedFrom - run.offset, position - run.position);
        }
      }),
    );
  });

  test('follow one another without an end known beforehand, to 5 TB, and no more than there can be', () => {
    const layout = growingParts();
    assert.deepEqual(layout.partAt(5 * MIB), { number: 2, position: 5 * MIB, length: 5 * MIB });
    assert.deepEqual(layout.partAt(5000 * MIB - 1), { number: 1000, position: 4995 * MIB, length: 5 * MIB });
    assert.deepEqual(layout.partAt(5000 * MIB), { number: 1001, position: 5000 * MIB, length: 10 * MIB });
    const last = layout.partAt(5e12);
    assert.ok(last.number <= 10_000 && last.length <= 5 * GIB);
  });
});

describe('the ranges that a plan takes unchanged', () => {
  test('are joined across what is hashed differently, and ended by what is inserted or skipped', () => {
    const splices: Splice[] = [
      { kind: 'copy', offset: 0, length: 10, into: 'none' },
      { kind: 'mark', bytes: new Uint8Array(8) },
      { kind: 'copy', offset: 10, length: 5, into: 'flat' },
      { kind: 'copy', offset: 16, length: 4, into: 'flat' },
      { kind: 'insert', bytes: new Uint8Array(3), into: 'flat' },
      { kind: 'hole', length: 2 },
      { kind: 'copy', offset: 20, length: 1, into: 'leaves' },
    ];
    assert.deepEqual(copyRunsOf({ splices, hashing: { algorithm: 'sha256' } }), [
      { position: 0, offset: 0, length: 15 },
      { position: 15, offset: 16, length: 4 },
      { position: 24, offset: 20, length: 1 },
    ]);
  });
});

function lengthOf(splice: Exclude<Splice, { kind: 'mark' }>): number {
  return splice.kind === 'insert' ? splice.bytes.length : splice.length;
}

/** Every part of an object, found by asking for the byte behind the one before. */
function partsOf(layout: PartLayout, sizeBytes: number): ObjectPart[] {
  const parts: ObjectPart[] = [];
  for (let position = 0; position < sizeBytes; ) {
    const part = layout.partAt(position);
    parts.push(part);
    position = part.position + part.length;
  }
  return parts;
}

function assertWhole(parts: readonly ObjectPart[], sizeBytes: number): void {
  let position = 0;
  for (const [index, part] of parts.entries()) {
    assert.equal(part.number, index + 1);
    assert.equal(part.position, position);
    assert.ok(
      part.length >= (index === parts.length - 1 ? 1 : 5 * MIB),
      `part ${part.number} has ${part.length} bytes`,
    );
    assert.ok(part.length <= 5 * GIB);
    position += part.length;
  }
  assert.equal(position, sizeBytes);
  assert.ok(parts.length <= 10_000);
}
