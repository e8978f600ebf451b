import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningService } from '../../scripts/running-service.ts';

/** Clients that wait for their job and send the next one. */
const CLIENTS = 20;
/** Rows of the table that is printed. */
const ROWS = 20;

/** One sample of a service's memory and handles. */
interface Moment {
  readonly minute: number;
  readonly jobs: number;
  readonly rssMib: number;
  readonly heapMib: number;
  readonly openFiles: number;
  readonly handles: number;
  readonly loopDelayP99Ms: number;
}

/** Keeps a service busy for some minutes, and prints its memory and handles as time goes by. */
export async function soak(
  service: RunningService,
  minutes: number,
  bodyOf: (client: number) => object,
): Promise<void> {
  const stop = new AbortController();
  let jobs = 0;
  const client = async (number: number): Promise<void> => {
    while (!stop.signal.aborted) {
      const { status, results } = await service.runSync('/v2/sync/c2pa/audio', bodyOf(number));
      if (status !== 'succeeded') throw new Error(`a job failed: ${results[0]?.error}`);
      jobs += 1;
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  console.log('| minute | jobs | RSS (MiB) | heap (MiB) | open files | handles | event-loop delay p99 (ms) |');
  console.log('|---|---|---|---|---|---|---|');
  for (let row = 0; row <= ROWS; row += 1) {
    print(await momentOf(service, (row * minutes) / ROWS, jobs));
    if (row < ROWS) await Promise.race([sleep((minutes * 60_000) / ROWS), clients]);
  }
  stop.abort();
  await clients;
}

async function momentOf({ base }: RunningService, minute: number, jobs: number): Promise<Moment> {
  const text = await (await fetch(`${base}/metrics`)).text();
  const sample = (name: string): number => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1] ?? Number.NaN);
  return {
    minute,
    jobs,
    rssMib: sample('process_resident_memory_bytes') / 2 ** 20,
    heapMib: sample('nodejs_heap_size_used_bytes') / 2 ** 20,
    openFiles: sample('process_open_fds'),
    handles: sample('nodejs_active_handles_total'),
    loopDelayP99Ms: sample('nodejs_eventloop_lag_p99_seconds') * 1000,
  };
}

function print({ minute, jobs, ...numbers }: Moment): void {
  const { rssMib, heapMib, openFiles, handles, loopDelayP99Ms } = numbers;
  const cells = [minute.toFixed(1), jobs, rssMib.toFixed(0), heapMib.toFixed(0), openFiles, handles];
  console.log(`| ${[...cells, loopDelayP99Ms.toFixed(1)].join(' | ')} |`);
}
