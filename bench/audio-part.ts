import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RunningService } from '../scripts/running-service.ts';
import { type BenchContext, startBenchService, timeSdk, timeService } from './bench-context.ts';
import { type Contender, measureRounds, progress, type Series } from './measuring.ts';
import { writeSounds } from './media.ts';
import { ratioTarget, type Target, targetsTable, timesTable } from './report.ts';

const FILES = 500;
const FILE_BYTES = 64 * 1024;
const MAX_LOOP_DELAY_MS = 20;
const HEALTH_INTERVAL_MS = 5;

const OURS = 'service, one batch, read-back off';
const SDK = 'SDK alone: a loop of `Builder.sign` and sync';
const OURS_CHECKED = 'service, one batch, read-back on';
const SDK_WHOLE = 'the same, each output whole or not there: renamed, folder synced';
const SDK_CHECKED = 'SDK alone: a loop of sign, sync, read back';

/** Many small files in one batch, beside a loop over the SDK; and how the HTTP thread fares meanwhile. */
export async function audioPart(context: BenchContext): Promise<string> {
  progress('writing the audio files');
  const folder = join(context.folder, 'sounds');
  mkdirSync(folder);
  const files = writeSounds(folder, FILES, FILE_BYTES);
  const loopDelayFile = join(context.folder, 'loop-delay.jsonl');
  await using plain = await startBenchService(context, 'plain-audio', { readBack: false });
  await using checked = await startBenchService(context, 'checked-audio', { readBack: true });
  // A service stays up: the first batch, which compiles what is called often, does not count.
  for (const service of [plain, checked]) await timeService(service, 'audio', files, 'kept');

  const contenders: Contender[] = [
    { name: OURS, measure: () => timeService(plain, 'audio', files, 'kept') },
    { name: SDK, measure: () => timeSdk(context, 'audio/wav', files, { readBack: false }, 'kept') },
    {
      name: SDK_WHOLE,
      measure: () => timeSdk(context, 'audio/wav', files, { readBack: false, whole: true }, 'kept'),
    },
    { name: OURS_CHECKED, measure: () => timeService(checked, 'audio', files, 'kept') },
    { name: SDK_CHECKED, measure: () => timeSdk(context, 'audio/wav', files, { readBack: true }, 'kept') },
  ];
  const series = await measureRounds(contenders, context.rounds);
  const thread = await measureHttpThread(context, files, loopDelayFile);
  rmSync(folder, { recursive: true });
  const of = (name: string): Series => series.get(name) ?? [];
  return [
    `## ${FILES} WAV files of 64 kB each in one batch (${context.rounds} rounds, after a batch that does not count)`,
    timesTable(contenders, series),
    `During a batch with read-back on, ${thread.answers} health probes were answered, 99 of 100 within ${thread.healthP99Ms.toFixed(1)} ms.`,
    '### Targets',
    targetsTable([
      ratioTarget('read-back off: faster than the SDK loop', [of(SDK), of(OURS)], { atLeast: 1 }),
      ratioTarget('read-back on: faster than the SDK loop', [of(SDK_CHECKED), of(OURS_CHECKED)], { atLeast: 1 }),
      loopTarget(thread.loopP99Ms),
    ]),
  ].join('\n\n');
}

function loopTarget(p99Ms: number): Target {
  return {
    statement: `event-loop delay of the HTTP thread under ${MAX_LOOP_DELAY_MS} ms at the 99th percentile`,
    measured: `${p99Ms.toFixed(1)} ms`,
    held: p99Ms < MAX_LOOP_DELAY_MS,
  };
}

interface HttpThread {
  /** From inside: how late the event loop was. */
  readonly loopP99Ms: number;
  /** From outside: how long a health probe took. */
  readonly healthP99Ms: number;
  readonly answers: number;
}

async function measureHttpThread(
  context: BenchContext,
  files: readonly string[],
  loopDelayFile: string,
): Promise<HttpThread> {
  progress('measuring the HTTP thread');
  await using service = await startBenchService(context, 'probed-audio', { readBack: true, loopDelayFile });
  await timeService(service, 'audio', files.slice(0, 20), 'kept');
  process.kill(service.pid, 'SIGUSR2');
  const batch = new AbortController();
  const probing = probeHealth(service, batch.signal);
  await timeService(service, 'audio', files, 'kept');
  batch.abort();
  const latencies = (await probing).sort((one, other) => one - other);
  process.kill(service.pid, 'SIGUSR2');
  await sleep(200);
  const lines = readFileSync(loopDelayFile, 'utf8').trim().split('\n');
  const { p99Ms } = JSON.parse(lines.at(-1) ?? '{}') as { p99Ms: number };
  return {
    loopP99Ms: p99Ms,
    healthP99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? Number.NaN,
    answers: latencies.length,
  };
}

async function probeHealth(service: RunningService, signal: AbortSignal): Promise<number[]> {
  const latencies: number[] = [];
  while (!signal.aborted) {
    const startedAt = performance.now();
    const answer = await fetch(`${service.base}/v2/health`);
    await answer.arrayBuffer();
    latencies.push(performance.now() - startedAt);
    await sleep(HEALTH_INTERVAL_MS);
  }
  return latencies;
}
