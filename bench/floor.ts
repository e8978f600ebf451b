// The floor: a bare program of two threads that copies, hashes and syncs a file, and does nothing else. One thread
// reads and writes, the other hashes, over a ring of shared blocks. `node bench/floor.ts IN OUT` prints milliseconds.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const BLOCK_BYTES = 1024 * 1024;
const RING_BLOCKS = 16;
/** Positions in the counters: how many blocks were filled, and how many were hashed. */
const FILLED = 0;
const HASHED = 1;

interface Ring {
  readonly blocks: SharedArrayBuffer;
  readonly counters: SharedArrayBuffer;
  readonly sizeBytes: number;
}

if (isMainThread) await copy(process.argv[2] ?? '', process.argv[3] ?? '');
else hash(workerData as Ring);

async function copy(from: string, to: string): Promise<void> {
  const source = openSync(from, 'r');
  const target = openSync(to, 'w');
  const sizeBytes = fstatSync(source).size;
  const ring = {
    blocks: new SharedArrayBuffer(BLOCK_BYTES * RING_BLOCKS),
    counters: new SharedArrayBuffer(8),
    sizeBytes,
  };
  const hasher = new Worker(new URL(import.meta.url), { workerData: ring });
  await once(hasher, 'online');
  const startedAt = performance.now();
  const digest = once(hasher, 'message');
  const counters = new Int32Array(ring.counters);
  for (let block = 0, position = 0; position < sizeBytes; block += 1) {
    awaitHashed(counters, block - RING_BLOCKS + 1);
    const length = Math.min(BLOCK_BYTES, sizeBytes - position);
    const bytes = new Uint8Array(ring.blocks, (block % RING_BLOCKS) * BLOCK_BYTES, length);
    const read = readSync(source, bytes, 0, length, position);
    if (read !== length) throw new Error('the file shrank');
    Atomics.store(counters, FILLED, block + 1);
    Atomics.notify(counters, FILLED);
    writeSync(target, bytes, 0, length, position);
    position += length;
  }
  fsyncSync(target);
  await digest;
  console.log(performance.now() - startedAt);
  closeSync(source);
  closeSync(target);
}

function awaitHashed(counters: Int32Array, blocks: number): void {
  for (;;) {
    const hashed = Atomics.load(counters, HASHED);
    if (hashed >= blocks) return;
    Atomics.wait(counters, HASHED, hashed);
  }
}

function hash({ blocks, counters: shared, sizeBytes }: Ring): void {
  const counters = new Int32Array(shared);
  const digest = createHash('sha256');
  for (let block = 0, position = 0; position < sizeBytes; block += 1) {
    while (Atomics.load(counters, FILLED) <= block) Atomics.wait(counters, FILLED, block);
    const length = Math.min(BLOCK_BYTES, sizeBytes - position);
    digest.update(new Uint8Array(blocks, (block % RING_BLOCKS) * BLOCK_BYTES, length));
    Atomics.store(counters, HASHED, block + 1);
    Atomics.notify(counters, HASHED);
    position += length;
  }
  parentPort?.postMessage(digest.digest('hex'));
}
