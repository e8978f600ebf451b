import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { type Edit, OffsetShift } from '#formats/isobmff/move-offsets.ts';

describe('an offset', () => {
  const shift = new OffsetShift(
    [
      { offset: 50, removedBytes: 10, insertedBytes: 0 },
      { offset: 20, removedBytes: 0, insertedBytes: 100 },
    ],
    80,
  );

  test('moves with the byte that it leads to', () => {
    assert.deepEqual(
      [19, 20, 49, 60, 79].map((offset) => shift.deltaAt(offset)),
      [0, 100, 100, 90, 90],
    );
    assert.equal(shift.outputSizeBytes, 170);
  });

  test('stays where it points to removed bytes, or cannot be exact', () => {
    const offsets = [50, 59, 0, -1, 2 ** 54, Number.POSITIVE_INFINITY];
    assert.deepEqual(
      offsets.map((offset) => shift.deltaAt(offset)),
      [0, 0, 0, 0, 0, 0],
    );
  });

  test('past the end moves with the end', () => {
    assert.deepEqual(
      [80, 81, 2 ** 40].map((offset) => shift.deltaAt(offset)),
      [90, 90, 90],
    );
    assert.deepEqual(
      [0, 1, 79, 80].map((offset) => shift.pointsToByte(offset)),
      [false, true, true, false],
    );
  });

  test('of 0 stays even where bytes are inserted at the very start: writers use it for "none"', () => {
    const atStart = new OffsetShift([{ offset: 0, removedBytes: 0, insertedBytes: 7 }], 10);
    assert.deepEqual(
      [0, 1].map((offset) => atStart.deltaAt(offset)),
      [0, 7],
    );
  });

  test('moves as it does when the edits are made one by one on real bytes', () => {
    const gaps = fc.array(fc.record({ gap: fc.nat(5), removedBytes: fc.nat(5), insertedBytes: fc.nat(9) }), {
      maxLength: 6,
    });
    fc.assert(
      fc.property(gaps, fc.nat(5), (steps, tail) => {
        const edits: Edit[] = [];
        const source: number[] = [];
        const output: (number | null)[] = [];
        const keep = (count: number) => {
          for (let index = 0; index < count; index += 1) output.push(source.push(source.length) - 1);
        };
        for (const { gap, removedBytes, insertedBytes } of steps) {
          keep(gap + 1);
          edits.push({ offset: source.length, removedBytes, insertedBytes });
          for (let index = 0; index < removedBytes; index += 1) source.push(source.length);
          for (let index = 0; index < insertedBytes; index += 1) output.push(null);
        }
        keep(tail + 1);
        const made = new OffsetShift(edits.toReversed(), source.length);
        assert.equal(made.outputSizeBytes, output.length);
        for (const offset of source.slice(1)) {
          const place = output.indexOf(offset);
          assert.equal(offset + made.deltaAt(offset), place === -1 ? offset : place);
        }
      }),
    );
  });
});
