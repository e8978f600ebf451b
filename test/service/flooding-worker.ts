import { Worker } from 'node:worker_threads';
import { inputRunner } from '#worker.ts';
import { runInputWorker } from '#workers/input-worker.ts';

/** Writes well-formed requests of 1 MiB to the inherited channel (file descriptor 4) without end, and reads no answer. */
const FLOOD = `
const { writeSync } = require('node:fs');
const frame = Buffer.alloc(10 + 1024 * 1024);
frame.writeUInt32LE(1024 * 1024, 0);
const pause = new Int32Array(new SharedArrayBuffer(4));
for (let rest = frame; ; ) {
  try {
    rest = rest.subarray(writeSync(4, rest));
    if (rest.length === 0) rest = frame;
  } catch {
    Atomics.wait(pause, 0, 0, 1);
  }
}`;

runInputWorker({
  async start(config, worker) {
    const run = await inputRunner.start(config, worker);
    return (work, context) => {
      if (JSON.stringify(work.input).includes('flood.wav')) new Worker(FLOOD, { eval: true });
      return run(work, context);
    };
  },
});
