// Preloaded into the service (`node --import`): measures the event loop of the HTTP thread from inside. On SIGUSR2 it
// appends what it measured since the last time to the file that BENCH_LOOP_DELAY_FILE names, as a line of JSON.
import { appendFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const NANOSECONDS_PER_MS = 1e6;
/** The histogram's timer fires so often; the delay is what it comes late. */
const RESOLUTION_MS = 1;

const file = process.env['BENCH_LOOP_DELAY_FILE'];
// Input workers inherit the preload; only the service process is measured.
if (file !== undefined && isMainThread && process.argv[1]?.endsWith('main.ts')) {
  const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delays.enable();
  process.on('SIGUSR2', () => {
    const p99Ms = delays.percentile(99) / NANOSECONDS_PER_MS - RESOLUTION_MS;
    appendFileSync(file, `${JSON.stringify({ p99Ms, maxMs: delays.max / NANOSECONDS_PER_MS - RESOLUTION_MS })}\n`);
    delays.reset();
  });
}
