import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { ByteSource } from '#bytes/byte-source.ts';
import { digestPlan, executePlan, fillHole } from '#bytes/execute-plan.ts';
import {
  type HashAlgorithm,
  outputSizeBytes,
  type PlanDigests,
  type Splice,
  type SplicePlan,
} from '#bytes/splice-plan.ts';
import { MemorySource } from '../support/memory-source.ts';
import { MemorySink } from './memory-sink.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const never = new AbortController().signal;
const content = randomBytes(5 * MIB + 4321);

describe('executing a plan', () => {
  test('writes and hashes every plan as a naive implementation does', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryPlan(), async (plan) => {
        const expected = plainly(plan);
        const sink = new MemorySink(outputSizeBytes(plan));
        const digests = await executePlan(plan, new MemorySource(content), sink, { signal: never });
        assert.ok(sink.bytes.equals(expected.output), 'output');
        assert.deepEqual(hexOf(digests), hexOf(expected.digests));
        assert.deepEqual(
          hexOf(await digestPlan(plan, new MemorySource(content), { signal: never })),
          hexOf(expected.digests),
        );
      }),
      { numRuns: 60 },
    );
  });

  test('digests the source bytes of the output, replaced ones as they were read', async () => {
    const [start, end] = [MIB - 5, 3 * MIB + 7];
    const original = content.subarray(start, end);
    const plan: SplicePlan = {
      splices: [
        { kind: 'copy', offset: 0, length: start, into: 'none' },
        { kind: 'insert', bytes: Buffer.from('of the plan alone'), into: 'flat' },
        { kind: 'insert', bytes: Buffer.alloc(original.length, 1), into: 'flat', original },
        { kind: 'hole', length: 100 },
        { kind: 'copy', offset: end, length: content.length - end, into: 'flat' },
      ],
      hashing: { algorithm: 'sha512' },
    };
    const walk = { signal: never, digestSource: true };
    const sink = new MemorySink(outputSizeBytes(plan));
    const { source } = await executePlan(plan, new MemorySource(content), sink, walk);
    assert.deepEqual(source, createHash('sha256').update(content).digest());
  });

  test('reads and writes 20,000 small splices in few requests', async () => {
    const splices = Array.from({ length: 20_000 }, (_, index): Splice[] => [
      { kind: 'mark', bytes: Buffer.alloc(8, index) },
      { kind: 'copy', offset: index * 256, length: 200, into: 'flat' },
      { kind: 'insert', bytes: Buffer.alloc(56, index), into: 'flat' },
    ]).flat();
    const plan: SplicePlan = { splices, hashing: { algorithm: 'sha256' } };
    const source = new MemorySource(content);
    const sink = new MemorySink(outputSizeBytes(plan));
    const digests = await executePlan(plan, source, sink, { signal: never });
    assert.ok(sink.bytes.equals(plainly(plan).output));
    assert.deepEqual(hexOf(digests), hexOf(plainly(plan).digests));
    assert.ok(source.readCount <= 6, `${source.readCount} reads`);
    assert.ok(sink.writeCount <= 6, `${sink.writeCount} writes`);
  });

  test('does not read the bytes between distant copies', async () => {
    const plan: SplicePlan = {
      splices: [
        { kind: 'copy', offset: 4 * MIB, length: 10, into: 'flat' },
        { kind: 'copy', offset: 0, length: 10, into: 'flat' },
        { kind: 'copy', offset: 200 * KIB, length: 10, into: 'flat' },
      ],
      hashing: { algorithm: 'sha256' },
    };
    const source = new MemorySource(content);
    await executePlan(plan, source, new MemorySink(30), { signal: never });
    assert.equal(source.readCount, 3);
    assert.equal(source.bytesRead, 30);
  });

  test('reports progress that grows up to the number of written bytes', async () => {
    const plan: SplicePlan = {
      splices: [
        { kind: 'hole', length: 100 },
        { kind: 'copy', offset: 0, length: content.length, into: 'flat' },
      ],
      hashing: { algorithm: 'sha256' },
    };
    const reports: number[] = [];
    await executePlan(plan, new MemorySource(content), new MemorySink(content.length + 100), {
      signal: never,
      onProgress: (bytesDone) => reports.push(bytesDone),
    });
    assert.deepEqual(
      reports,
      reports.toSorted((a, b) => a - b),
    );
    assert.equal(reports.at(-1), content.length);
    assert.ok(reports.length > 1);
  });

  test('refuses leaves of anything but one run of the source: their blocks would start anew', async () => {
    const plan: SplicePlan = {
      splices: [{ kind: 'insert', bytes: Buffer.alloc(10), into: 'leaves' }],
      hashing: { algorithm: 'sha256', leafSizeBytes: 4 },
    };
    const walk = executePlan(plan, new MemorySource(content), new MemorySink(10), { signal: never });
    await assert.rejects(walk, /only a copy can be hashed into leaves/);
  });

  test('fails with the error of the source or the sink, when nothing of it runs any more', async () => {
    const plan = copyAll();
    const broken = new Error('broken on purpose');
    const source = new MemorySource(content, { failFrom: 3 * MIB, failure: broken });
    await assert.rejects(executePlan(plan, source, new MemorySink(content.length), { signal: never }), broken);
    assert.equal(source.running, 0);

    const sink = new MemorySink(content.length, { failFrom: 2 * MIB, failure: broken });
    const whole = new MemorySource(content);
    await assert.rejects(executePlan(plan, whole, sink, { signal: never }), broken);
    assert.equal(whole.running + sink.running, 0);
  });

  test('stops with the reason of its signal', async () => {
    const reason = new Error('stopped by the test');
    const stop = new AbortController();
    const sink = new MemorySink(content.length);
    const walk = executePlan(copyAll(), new MemorySource(content), sink, {
      signal: stop.signal,
      onProgress: () => stop.abort(reason),
    });
    await assert.rejects(walk, reason);
    assert.equal(sink.running, 0);
    await assert.rejects(
      executePlan(copyAll(), new MemorySource(content), sink, { signal: AbortSignal.abort(reason) }),
      reason,
    );
  });

  for (const [what, plan] of [
    ['copied', copyAll()],
    ['copied around an insertion, as fragments are,', copyAround(24, 700 * KIB)],
  ] as const) {
    test(`reuses the same buffers in consecutive executions where all is ${what}`, async () => {
      const source = new MemorySource(content);
      const buffers = new Set<ArrayBufferLike>();
      const watched: ByteSource = {
        name: source.name,
        sizeBytes: source.sizeBytes,
        read: (target, offset, signal) => {
          buffers.add(target.buffer);
          return source.read(target, offset, signal);
        },
        close: () => source.close(),
      };
      for (let count = 0; count < 20; count += 1) {
        await executePlan(plan, watched, new MemorySink(outputSizeBytes(plan)), { signal: never });
      }
      assert.ok(buffers.size <= 8, `${buffers.size} buffers`);
    });
  }

  test('fails when the source says that it has changed', async () => {
    const changed = new Error('changed');
    const source = new MemorySource(content, { changed });
    await assert.rejects(executePlan(copyAll(), source, new MemorySink(content.length), { signal: never }), changed);
  });
});

describe('filling a hole', () => {
  const plan: SplicePlan = {
    splices: [
      { kind: 'copy', offset: 0, length: 3, into: 'flat' },
      { kind: 'hole', length: 8 },
      { kind: 'copy', offset: 3, length: 2, into: 'flat' },
    ],
    hashing: { algorithm: 'sha256' },
  };

  test('writes the bytes at its position', async () => {
    const sink = new MemorySink(13);
    await executePlan(plan, new MemorySource(Buffer.from('abcde')), sink, { signal: never });
    await fillHole(plan, sink, Buffer.from('manifest'), never);
    assert.equal(sink.bytes.toString('latin1'), 'abcmanifestde');
  });

  test('refuses more and fewer bytes', async () => {
    for (const sizeBytes of [7, 9]) {
      await assert.rejects(fillHole(plan, new MemorySink(13), Buffer.alloc(sizeBytes), never), assert.AssertionError);
    }
  });
});

/** A short head, an insertion, and the long rest. */
function copyAround(headBytes: number, restBytes: number): SplicePlan {
  return {
    splices: [
      { kind: 'copy', offset: 0, length: headBytes, into: 'flat' },
      { kind: 'insert', bytes: Buffer.alloc(100, 1), into: 'flat' },
      { kind: 'copy', offset: headBytes, length: restBytes, into: 'flat' },
    ],
    hashing: { algorithm: 'sha256' },
  };
}

function copyAll(): SplicePlan {
  return {
    splices: [{ kind: 'copy', offset: 0, length: content.length, into: 'flat' }],
    hashing: { algorithm: 'sha256' },
  };
}

/** Executes a plan naively. */
function plainly(plan: SplicePlan): { output: Buffer; digests: PlanDigests } {
  const { algorithm, leafSizeBytes = 1 } = plan.hashing;
  const flat = createHash(algorithm);
  const leaves: Uint8Array[] = [];
  const output: Uint8Array[] = [];
  for (const splice of plan.splices) {
    const bytes = plainBytes(splice);
    if (splice.kind !== 'mark') output.push(bytes);
    if (splice.kind === 'mark' || (splice.kind !== 'hole' && splice.into === 'flat')) flat.update(bytes);
    if (splice.kind === 'copy' && splice.into === 'leaves') {
      for (let at = 0; at < bytes.length; at += leafSizeBytes) {
        leaves.push(
          createHash(algorithm)
            .update(bytes.subarray(at, at + leafSizeBytes))
            .digest(),
        );
      }
    }
  }
  return { output: Buffer.concat(output), digests: { flat: flat.digest(), leaves } };
}

function plainBytes(splice: Splice): Uint8Array {
  if (splice.kind === 'copy') return content.subarray(splice.offset, splice.offset + splice.length);
  return splice.kind === 'hole' ? Buffer.alloc(splice.length) : splice.bytes;
}

function hexOf({ flat, leaves }: PlanDigests) {
  return [flat, ...leaves].map((digest) => Buffer.from(digest).toString('hex'));
}

function arbitraryPlan(): fc.Arbitrary<SplicePlan> {
  const into = fc.constantFrom('flat' as const, 'none' as const);
  const length = fc.oneof(fc.nat(40), fc.nat(100 * KIB), fc.nat(2 * MIB));
  const copy = fc
    .record({ offset: fc.nat(3 * MIB), length, into })
    .map((fields): Splice => ({ kind: 'copy', ...fields }));
  const insert = fc
    .record({ length, into })
    .map((fields): Splice => ({ kind: 'insert', bytes: content.subarray(7, 7 + fields.length), into: fields.into }));
  const mark = fc.uint8Array({ maxLength: 8 }).map((bytes): Splice => ({ kind: 'mark', bytes }));
  const hole = fc.nat(20 * KIB).map((holeLength): Splice => ({ kind: 'hole', length: holeLength }));
  const leaves = fc
    .record({ offset: fc.nat(MIB), length: fc.nat(4 * MIB) })
    .map((fields): Splice => ({ kind: 'copy', ...fields, into: 'leaves' }));
  const some = fc.array(fc.oneof(copy, insert, mark), { maxLength: 12 });
  const atMostOne = (one: fc.Arbitrary<Splice>) => fc.array(one, { maxLength: 1 });
  return fc
    .record({
      parts: fc.tuple(some, atMostOne(hole), some, atMostOne(leaves), some),
      algorithm: fc.constantFrom<HashAlgorithm>('sha256', 'sha384', 'sha512'),
      leafSizeBytes: fc.constantFrom(64 * KIB, 100_000, MIB, 2 * MIB + 1),
    })
    .map(({ parts, algorithm, leafSizeBytes }) => ({ splices: parts.flat(), hashing: { algorithm, leafSizeBytes } }));
}
