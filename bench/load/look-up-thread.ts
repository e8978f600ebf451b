/**
 * Looks a job up again and again, on a thread of its own: what the other clients keep this process busy with is not in
 * the times. The first message of the parent ends it, and is answered with the milliseconds that each look took.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

/** Look-ups under way at once, and the pause of each between two: what a few dozen polling clients ask for. */
const LOOKING = 4;
const PAUSE_MS = 5;

assert(parentPort !== null, 'this module runs on a thread of its own');
const stop = new AbortController();
const url = workerData as string;
const durationsMs: number[] = [];
const looking = Promise.all(Array.from({ length: LOOKING }, look));
await once(parentPort, 'message');
stop.abort();
await looking;
parentPort.postMessage(durationsMs);

async function look(): Promise<void> {
  while (!stop.signal.aborted) {
    const startedAt = performance.now();
    const reply = await fetch(url);
    await reply.arrayBuffer();
    assert.equal(reply.status, 200, 'a look-up is answered with the job');
    durationsMs.push(performance.now() - startedAt);
    await sleep(PAUSE_MS);
  }
}
