import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { StoredMap } from '#publications/verification/stored-binding.ts';
import { type PlayedFragment, verifySequence } from '#publications/verification/verify-sequence.ts';

const COUNT = 12;
const own = mapOf(COUNT);
const other = mapOf(COUNT);

function mapOf(count: number): StoredMap {
  return { uniqueId: 1, localId: 1, count, initHash: new Uint8Array(32), hashes: [] };
}

const signedAt = (location: number, map = own): PlayedFragment => ({ map, location, isBound: true });
const alteredAt = (location: number): PlayedFragment => ({ map: own, location, isBound: false });
const ABSENT: PlayedFragment = undefined;
const UNSIGNED: PlayedFragment = null;

const programme = Array.from({ length: COUNT }, (_, location) => signedAt(location));

/** Returns what is not intact: the kind, the index in playback order, and the position in the map. */
function deviations(fragments: readonly PlayedFragment[], map = own): string[] {
  return verifySequence(fragments, map).flatMap((verdict, index) =>
    verdict.kind === 'intact' ? [] : [`${verdict.kind} ${index} ${'position' in verdict ? verdict.position : '-'}`],
  );
}

describe('fragments in playback order', () => {
  test('are intact as they were signed', () => {
    assert.deepEqual(deviations(programme), []);
  });

  test('are one that was moved, and not all that it passed', () => {
    const moved = programme.toSpliced(1, 1).toSpliced(8, 0, signedAt(1));
    assert.deepEqual(deviations(moved), ['reordered 8 1']);
  });

  test('are pairs that were exchanged, however far', () => {
    const exchanged = programme.with(2, signedAt(9)).with(9, signedAt(2));
    assert.deepEqual(deviations(exchanged), ['swapped 2 2', 'swapped 9 9']);
  });

  test('are assigned the positions of what is missing', () => {
    assert.deepEqual(deviations(programme.with(3, ABSENT).with(4, UNSIGNED).with(5, signedAt(5, other))), [
      'missing 3 3',
      'altered 4 4',
      'swapped 5 5',
    ]);
  });

  test('are assigned the positions before the next, where a playlist begins later', () => {
    const later = programme.slice(4).with(0, UNSIGNED).with(1, ABSENT);
    assert.deepEqual(deviations(later), ['altered 0 4', 'missing 1 5']);
    assert.deepEqual(deviations(programme.slice(4).with(0, UNSIGNED).with(5, signedAt(3))), [
      'altered 0 4',
      'reordered 5 3',
    ]);
  });

  test('are added where no position is free', () => {
    assert.deepEqual(deviations(programme.toSpliced(4, 0, UNSIGNED, UNSIGNED)), ['added 4 -', 'added 5 -']);
    assert.deepEqual(deviations(programme.toSpliced(4, 0, signedAt(7))), ['added 4 -']);
  });

  test('are altered where they say where they belong', () => {
    assert.deepEqual(deviations(programme.with(6, alteredAt(6))), ['altered 6 6']);
  });

  test('take no longer for a map that states millions', () => {
    const huge = mapOf(2 ** 24);
    const scattered = Array.from({ length: 20_000 }, (_, index) =>
      index % 2 === 0 ? { map: huge, location: (index * 7919) % 20_011, isBound: true } : UNSIGNED,
    );
    assert.equal(verifySequence(scattered, huge).length, scattered.length);
  });

  test('get a verdict each, whatever they state', () => {
    const stated = fc.record({
      map: fc.constantFrom(own, other),
      location: fc.integer({ min: 0, max: COUNT + 2 }),
      isBound: fc.boolean(),
    });
    const fragment = fc.oneof(fc.constant(ABSENT), fc.constant(UNSIGNED), stated);
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 20 }), (fragments) => {
        const verdicts = verifySequence(fragments, own);
        assert.equal(verdicts.filter((verdict) => verdict !== undefined).length, fragments.length);
        const standing = verdicts.flatMap((verdict) => (verdict.kind === 'intact' ? [verdict.position] : []));
        assert.deepEqual(
          standing,
          [...new Set(standing)].sort((a, b) => a - b),
        );
      }),
    );
  });
});
