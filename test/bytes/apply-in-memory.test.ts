import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { applyInMemory, executePlan } from '#bytes/execute-plan.ts';
import { outputSizeBytes, type Splice, type SplicePlan } from '#bytes/splice-plan.ts';
import { memorySink, memorySource } from '../support/memory-bytes.ts';

const { signal } = new AbortController();
const into = fc.constantFrom('flat', 'none') as fc.Arbitrary<'flat' | 'none'>;

/** Any splice of a source of 200 bytes, but holes. */
const splice: fc.Arbitrary<Splice> = fc.oneof(
  fc.record({
    kind: fc.constant('copy' as const),
    offset: fc.integer({ min: 0, max: 100 }),
    length: fc.integer({ min: 1, max: 100 }),
    into,
  }),
  fc.record({ kind: fc.constant('insert' as const), bytes: fc.uint8Array({ minLength: 1, maxLength: 20 }), into }),
  fc.record({ kind: fc.constant('mark' as const), bytes: fc.uint8Array({ minLength: 8, maxLength: 8 }) }),
);

describe('applying a plan in memory', () => {
  test('makes the same bytes and the same digest as executing the plan', async () => {
    const whole = Buffer.from(Array.from({ length: 200 }, (_, index) => index));
    await fc.assert(
      fc.asyncProperty(fc.array(splice, { minLength: 1, maxLength: 12 }), async (splices) => {
        const plan: SplicePlan = { splices, hashing: { algorithm: 'sha256' } };
        const sink = memorySink(outputSizeBytes(plan));
        const { flat } = await executePlan(plan, memorySource(whole, 'whole'), sink, { signal });
        const output = Buffer.alloc(outputSizeBytes(plan));
        assert.deepEqual(applyInMemory(plan, whole, 0, output), flat);
        assert.deepEqual(output, sink.bytes);
      }),
    );
  });

  test('takes offsets of a file of which a part is in memory, and does not write the hole', () => {
    const plan: SplicePlan = {
      splices: [
        { kind: 'copy', offset: 1_001, length: 2, into: 'flat' },
        { kind: 'hole', length: 2 },
        { kind: 'copy', offset: 1_000, length: 1, into: 'none' },
      ],
      hashing: { algorithm: 'sha256' },
    };
    const output = Buffer.from('.....');
    applyInMemory(plan, Buffer.from('abc'), 1_000, output);
    assert.equal(output.toString(), 'bc..a');
  });

  test('never copies bytes that are not in memory', () => {
    const plan: SplicePlan = {
      splices: [{ kind: 'copy', offset: 2, length: 2, into: 'none' }],
      hashing: { algorithm: 'sha256' },
    };
    assert.throws(() => applyInMemory(plan, Buffer.from('abc'), 0, Buffer.alloc(2)), { code: 'ERR_ASSERTION' });
  });
});
