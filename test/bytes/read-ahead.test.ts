import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { describe, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import fc from 'fast-check';
import type { ByteSource } from '#bytes/byte-source.ts';
import { PrefetchBudget, ReadAhead } from '#bytes/read-ahead.ts';
import { AppError } from '#errors/app-error.ts';
import { byteSourceContract } from './byte-source-contract.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;

/** Remote source whose bytes come in pieces, one turn of the event loop apart. */
class FarBytes {
  readonly fetches: { readonly offset: number; readonly length: number }[] = [];
  /** Bytes that are asked for and neither here nor given up yet. */
  comingBytes = 0;
  mostComingBytes = 0;
  failNext: Error | null = null;
  readonly #content: Buffer;

  constructor(content: Buffer) {
    this.#content = content;
  }

  readAhead(head?: Buffer, memory?: PrefetchBudget): ReadAhead {
    return new ReadAhead({
      name: 'far.mp4',
      sizeBytes: this.#content.length,
      fetch: (offset, length, signal) => this.#fetch(offset, length, signal),
      ...(head !== undefined && { head }),
      ...(memory !== undefined && { memory }),
    });
  }

  async *#fetch(offset: number, length: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    this.fetches.push({ offset, length });
    this.comingBytes += length;
    this.mostComingBytes = Math.max(this.mostComingBytes, this.comingBytes);
    try {
      for (let done = 0; done < length; ) {
        await turn();
        signal.throwIfAborted();
        if (this.failNext !== null) throw this.failNext;
        const piece = this.#content.subarray(offset + done, offset + Math.min(done + 300_001, length));
        yield piece;
        done += piece.length;
      }
    } finally {
      this.comingBytes -= length;
    }
  }
}

byteSourceContract('a source that is read ahead', async (content) => {
  const ahead = new FarBytes(content).readAhead();
  const source: ByteSource = {
    name: 'far.mp4',
    sizeBytes: content.length,
    read: (target, offset, signal) => ahead.read(target, offset, signal),
    close: async () => ahead.close(),
  };
  return { source, cleanUp: async () => undefined };
});

describe('reading ahead', () => {
  test('reads in order with few, ever larger fetches, several at once, and each byte once', async () => {
    const content = randomBytes(100 * MIB);
    const far = new FarBytes(content);
    await readInOrder(far.readAhead(), content, MIB, 8);
    assert.ok(far.fetches.length < 30, `${far.fetches.length} fetches`);
    assert.equal(sum(far.fetches), content.length);
    assert.ok(far.mostComingBytes > 16 * MIB && far.mostComingBytes <= 32 * MIB, `${far.mostComingBytes} at once`);
  });

  test('prefetches several ranges for a reader with one request at a time', async () => {
    const content = randomBytes(40 * MIB);
    const far = new FarBytes(content);
    await readInOrder(far.readAhead(), content, MIB, 1);
    assert.ok(far.mostComingBytes > 12 * MIB, `${far.mostComingBytes} at once`);
  });

  test('drops prefetched ranges when the reader jumps elsewhere', async () => {
    const content = randomBytes(100 * MIB);
    const far = new FarBytes(content);
    const memory = new PrefetchBudget();
    const ahead = far.readAhead(undefined, memory);
    await readInOrder(ahead, content.subarray(0, 8 * MIB), MIB, 1);
    const reading = readAt(ahead, content, 90 * MIB, 10);
    assert.ok(memory.usedBytes <= 16 * MIB, `${memory.usedBytes} held`);
    await reading;
    assert.ok(far.comingBytes <= 4 * MIB, `${far.comingBytes} still coming`);
  });

  test('keeps no more in memory for many concurrent sources than for one, apart from their requests', async () => {
    const content = randomBytes(20 * MIB);
    const memory = new PrefetchBudget();
    const sources = Array.from({ length: 8 }, () => new FarBytes(content).readAhead(undefined, memory));
    let most = 0;
    const read = async (ahead: ReadAhead) => {
      for (let offset = 0; offset < content.length; offset += MIB) {
        await readAt(ahead, content, offset, MIB);
        most = Math.max(most, memory.usedBytes);
      }
      ahead.close();
    };
    await Promise.all(sources.map(read));
    assert.ok(most <= memory.limitBytes + sources.length * MIB, `${most} held`);
    assert.equal(memory.usedBytes, 0);
  });

  test('takes one fetch for a small source, whatever is read of it first', async () => {
    const content = randomBytes(3 * MIB);
    const far = new FarBytes(content);
    const ahead = far.readAhead();
    await readAt(ahead, content, 2 * MIB, 10);
    await readInOrder(ahead, content, 1000, 1);
    assert.deepEqual(far.fetches, [{ offset: 0, length: content.length }]);
  });

  test('does not fetch the head that it was given', async () => {
    const content = randomBytes(10 * MIB);
    const far = new FarBytes(content);
    const ahead = far.readAhead(content.subarray(0, MIB));
    await readAt(ahead, content, 0, MIB);
    assert.equal(far.fetches.length, 0);
    await readAt(ahead, content, MIB - 1, 2);
    assert.ok(far.fetches.every(({ offset }) => offset >= MIB));
    assert.notEqual(far.fetches.length, 0);
  });

  test('fetches little for reads far apart', async () => {
    const content = randomBytes(64 * MIB);
    const far = new FarBytes(content);
    const ahead = far.readAhead();
    for (const offset of [60, 10, 40, 20, 50].map((mib) => mib * MIB)) await readAt(ahead, content, offset, 100);
    assert.equal(sum(far.fetches), 5 * 256 * 1024);
  });

  test('reads over small gaps rather than asking for every piece', async () => {
    const content = randomBytes(64 * MIB);
    const far = new FarBytes(content);
    const ahead = far.readAhead();
    for (let offset = 0; offset < content.length; offset += 500_000) await readAt(ahead, content, offset, 100);
    assert.ok(far.fetches.length < 20, `${far.fetches.length} fetches`);
  });

  test('returns the same bytes for any reads, also concurrent ones', async () => {
    const content = randomBytes(20 * MIB);
    const offset = fc.oneof(
      fc.integer({ min: 0, max: content.length }),
      fc.integer({ min: 0, max: 40 }).map((half) => half * (MIB / 2)),
    );
    const reads = fc.array(fc.tuple(offset, fc.integer({ min: 0, max: 3 * MIB }), fc.boolean()), { maxLength: 30 });
    await fc.assert(
      fc.asyncProperty(reads, async (wanted) => {
        const ahead = new FarBytes(content).readAhead();
        const running: Promise<void>[] = [];
        for (const [start, length, isAwaited] of wanted) {
          const read = readAt(ahead, content, start, Math.min(length, content.length - start));
          if (isAwaited) await read;
          else running.push(read);
        }
        await Promise.all(running);
        ahead.close();
      }),
      { numRuns: 25 },
    );
  });

  test('fails with the error of a fetch, and fetches again for the next read', async () => {
    const content = randomBytes(9 * MIB);
    const far = new FarBytes(content);
    const ahead = far.readAhead();
    const failure = new AppError('SOURCE_CHANGED', { name: 'far.mp4' });
    far.failNext = failure;
    await assert.rejects(readAt(ahead, content, 5 * MIB, 10), failure);
    far.failNext = null;
    await readAt(ahead, content, 5 * MIB, 10);
  });

  test('stops its fetches when it is closed', async () => {
    const content = randomBytes(30 * MIB);
    const far = new FarBytes(content);
    const ahead = far.readAhead();
    await readInOrder(ahead, content.subarray(0, 4 * MIB), MIB, 1);
    const late = assert.rejects(readAt(ahead, content, 29 * MIB, 10));
    ahead.close();
    await late;
    for (let turns = 0; turns < 5; turns += 1) await turn();
    assert.equal(far.comingBytes, 0);
  });
});

/** Reads all of it, so many reads at once, each as soon as one before it is done. */
async function readInOrder(ahead: ReadAhead, content: Buffer, size: number, lanes: number): Promise<void> {
  let next = 0;
  const takeTurns = async () => {
    while (next < content.length) {
      const offset = next;
      next += size;
      await readAt(ahead, content, offset, Math.min(size, content.length - offset));
    }
  };
  await Promise.all(Array.from({ length: lanes }, takeTurns));
}

async function readAt(ahead: ReadAhead, content: Buffer, offset: number, length: number): Promise<void> {
  const target = Buffer.alloc(length);
  await ahead.read(target, offset, never);
  assert.ok(target.equals(content.subarray(offset, offset + length)), `[${offset}, +${length})`);
}

function sum(fetches: readonly { readonly length: number }[]): number {
  return fetches.reduce((total, { length }) => total + length, 0);
}
