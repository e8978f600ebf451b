import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ByteSource } from '#bytes/byte-source.ts';
import { ChunkBuffers } from '#bytes/chunk-buffers.ts';
import { executePlan } from '#bytes/execute-plan.ts';
import { MemorySink } from './memory-sink.ts';
import { MemorySource } from './memory-source.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

describe('buffers of chunks', () => {
  test('are used again by what needs about as much', async () => {
    const buffers = new ChunkBuffers(4 * MIB);
    const first = await buffers.take(MIB - 1, never);
    buffers.giveBack(first);
    assert.equal(await buffers.take(MIB - 1000, never), first);
  });

  test('are waited for where the budget is spent, in the order of asking', async () => {
    const buffers = new ChunkBuffers(4 * MIB);
    const taken = await Promise.all([1, 1, 1].map((count) => buffers.take(count * MIB, never)));
    const order: string[] = [];
    const takeInTurn = async (name: string, sizeBytes: number): Promise<Buffer> => {
      const buffer = await buffers.take(sizeBytes, never);
      order.push(name);
      return buffer;
    };
    const large = takeInTurn('large', 2 * MIB);
    const small = takeInTurn('small', MIB);
    await nextTurn();
    assert.deepEqual(order, []);
    for (const buffer of taken) buffers.giveBack(buffer);
    assert.equal((await large).length, 2 * MIB);
    assert.equal((await small).length, MIB);
    assert.deepEqual(order, ['large', 'small']);
  });

  test('may be larger than the budget where nothing else is taken', async () => {
    const buffers = new ChunkBuffers(MIB);
    const small = await buffers.take(MIB, never);
    const large = buffers.take(3 * MIB, never);
    buffers.forgo(small);
    assert.ok((await large).length >= 3 * MIB);
  });

  test('are not waited for any longer than the caller wants to, and nobody behind it is held up', async () => {
    const buffers = new ChunkBuffers(4 * MIB);
    const taken = await buffers.take(2 * MIB, never);
    const stop = new AbortController();
    const large = buffers.take(4 * MIB, stop.signal);
    const small = buffers.take(MIB, never);
    const reason = new Error('stopped by the test');
    stop.abort(reason);
    await assert.rejects(large, reason);
    await small;
    await assert.rejects(buffers.take(MIB, stop.signal), reason);
    buffers.giveBack(taken);
  });

  test('bound what walks hold that run side by side, however large their sources are', async () => {
    const content = randomBytes(6 * MIB);
    let filling = 0;
    let most = 0;
    const slow = (): ByteSource => {
      const source = new MemorySource(content);
      return {
        name: source.name,
        sizeBytes: source.sizeBytes,
        async read(target, offset, signal) {
          filling += target.length;
          most = Math.max(most, filling);
          await nextTurn();
          await source.read(target, offset, signal);
          filling -= target.length;
        },
        close: () => source.close(),
      };
    };
    const plan = {
      splices: [{ kind: 'copy', offset: 0, length: content.length, into: 'flat' }],
      hashing: { algorithm: 'sha256' },
    } as const;
    const sinks = Array.from({ length: 12 }, () => new MemorySink(content.length));
    await Promise.all(sinks.map((sink) => executePlan(plan, slow(), sink, { signal: never })));
    assert.ok(sinks.every(({ bytes }) => bytes.equals(content)));
    assert.ok(most <= 16 * MIB, `${most} bytes`);
  });
});
