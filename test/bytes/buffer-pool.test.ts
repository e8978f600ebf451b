import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { BufferPool } from '#bytes/buffers.ts';
import type { ByteSource } from '#bytes/byte-source.ts';
import { executePlan } from '#bytes/execute-plan.ts';
import { MemorySource } from '../support/memory-source.ts';
import { MemorySink } from './memory-sink.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

describe('a buffer pool', () => {
  test('reuses a buffer for a request of about the same size', async () => {
    const buffers = new BufferPool(4 * MIB);
    const first = await buffers.acquire(MIB - 1, never);
    buffers.release(first);
    assert.equal(await buffers.acquire(MIB - 1000, never), first);
  });

  test('lets requests wait while its capacity is used up, first in, first out', async () => {
    const buffers = new BufferPool(4 * MIB);
    const taken = await Promise.all([1, 1, 1].map((count) => buffers.acquire(count * MIB, never)));
    const order: string[] = [];
    const takeInTurn = async (name: string, sizeBytes: number): Promise<Buffer> => {
      const buffer = await buffers.acquire(sizeBytes, never);
      order.push(name);
      return buffer;
    };
    const large = takeInTurn('large', 2 * MIB);
    const small = takeInTurn('small', MIB);
    await nextTurn();
    assert.deepEqual(order, []);
    for (const buffer of taken) buffers.release(buffer);
    assert.equal((await large).length, 2 * MIB);
    assert.equal((await small).length, MIB);
    assert.deepEqual(order, ['large', 'small']);
  });

  test('grants a buffer larger than itself when no other is acquired', async () => {
    const buffers = new BufferPool(MIB);
    const small = await buffers.acquire(MIB, never);
    const large = buffers.acquire(3 * MIB, never);
    buffers.discard(small);
    assert.ok((await large).length >= 3 * MIB);
  });

  test('drops an aborted request from the queue, and grants the one behind it', async () => {
    const buffers = new BufferPool(4 * MIB);
    const taken = await buffers.acquire(2 * MIB, never);
    const stop = new AbortController();
    const large = buffers.acquire(4 * MIB, stop.signal);
    const small = buffers.acquire(MIB, never);
    const reason = new Error('stopped by the test');
    stop.abort(reason);
    await assert.rejects(large, reason);
    await small;
    await assert.rejects(buffers.acquire(MIB, stop.signal), reason);
    buffers.release(taken);
  });

  test('bounds the memory of concurrent executions, however large their sources are', async () => {
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
