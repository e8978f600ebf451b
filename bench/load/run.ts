// `npm run load`: submits small files from many connections at once, synchronously and asynchronously by turns, one
// client in ten slow, and tells whether any was lost and how the service kept answering meanwhile.
// `--requests 2000`, `--connections 200`. `--soak 10` keeps the service busy for ten minutes instead, and prints its
// memory and handles. BENCH_DIR names the folder that is worked in. Whatever else the machine does is in the numbers.
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { RunningService } from '../../scripts/running-service.ts';
import { openContext, startBenchService } from '../bench-context.ts';
import { writeSounds } from '../media.ts';
import { machine } from '../report.ts';
import { postAll, type Submission } from './clients.ts';
import { LookUps, percentile } from './look-ups.ts';
import type { Answer } from './slow-client.ts';
import { soak } from './soak.ts';

const SOURCES = 50;
const SOURCE_BYTES = 32 * 1024;
const DEFAULT_REQUESTS = 2000;
const DEFAULT_CONNECTIONS = 200;
/** The probe writes its line when it is asked, which takes a moment. */
const PROBE_WAIT_MS = 500;

const { values } = parseArgs({
  options: { requests: { type: 'string' }, connections: { type: 'string' }, soak: { type: 'string' } },
});
const requests = Number(values.requests ?? DEFAULT_REQUESTS);
const connections = Number(values.connections ?? DEFAULT_CONNECTIONS);
const soakMinutes = values.soak === undefined ? null : Number(values.soak);
if (!(requests >= 1 && connections >= 10 && (soakMinutes ?? 1) > 0)) {
  console.error('--requests takes a number, --connections one of at least 10, --soak minutes.');
  process.exit(2);
}
const artifacts = join(fileURLToPath(import.meta.url), '../../../.artifacts');
const folder = join(process.env['BENCH_DIR'] ?? artifacts, 'load');
const context = openContext(folder, 1);
const loopDelayFile = join(folder, 'loop-delay.jsonl');
try {
  mkdirSync(join(folder, 'sources'));
  const sources = writeSounds(join(folder, 'sources'), SOURCES, SOURCE_BYTES);
  const service = await startBenchService(context, 'service', { readBack: true, loopDelayFile });
  try {
    console.log(`Measured on ${machine()}.\n`);
    if (soakMinutes !== null) await soak(service, soakMinutes, (client) => bodyOf(sources, client));
    else await load(service, sources);
  } finally {
    await service.stop();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function bodyOf(sources: readonly string[], number: number): object {
  const path = sources[number % sources.length];
  return { inputs: [{ type: 'local_file_path', path }], output: { type: 'local', name: String(number) } };
}

async function load(service: RunningService, sources: readonly string[]): Promise<void> {
  let number = 0;
  const next = (): Submission => {
    number += 1;
    const path = number % 2 === 0 ? '/v2/c2pa/audio' : '/v2/sync/c2pa/audio';
    return { path, body: JSON.stringify(bodyOf(sources, number)) };
  };
  const first = await service.submit('/v2/c2pa/audio', bodyOf(sources, number));
  await loopDelay(service);
  const lookUps = new LookUps(service.base, first);
  const startedAt = performance.now();
  const answers = await postAll(service.base, { requests, connections, next });
  const answeredMs = performance.now() - startedAt;
  const lost = await countLost(service, answers);
  const endedMs = performance.now() - startedAt;
  const looks = await lookUps.stop();
  const delay = await loopDelay(service);
  const rows = [
    ['submissions', `${requests}, ${statuses(answers)}`],
    ['jobs lost', lost],
    ['all answered', `${seconds(answeredMs)} s`],
    ['all ended', `${seconds(endedMs)} s, ${Math.round(requests / (endedMs / 1000))} jobs a second`],
    ['job look-ups', `${looks.length}, p50 ${ms(percentile(looks, 0.5))}, p99 ${ms(percentile(looks, 0.99))}`],
    ['event-loop delay', `p99 ${ms(delay.p99Ms)}, max ${ms(delay.maxMs)}`],
  ];
  console.log(`| | |\n|---|---|\n${rows.map((row) => `| ${row.join(' | ')} |`).join('\n')}`);
  const refused = answers.filter(({ status }) => status !== 200 && status !== 503).length;
  if (lost > 0 || refused > 0) process.exitCode = 1;
}

/** Counts the jobs that were accepted and did not succeed, or were refused with another status than 503. */
async function countLost(service: RunningService, answers: readonly Answer[]): Promise<number> {
  let lost = 0;
  for (const { status, body } of answers) {
    if (status === 503) continue;
    const jobId = status === 200 ? (JSON.parse(body) as { job_id: string }).job_id : null;
    const job = jobId === null ? null : await service.waitFor(jobId);
    if (job?.status !== 'succeeded') lost += 1;
  }
  return lost;
}

/** The delays of the service's event loop since they were asked for last. */
async function loopDelay({ pid }: RunningService): Promise<{ p99Ms: number; maxMs: number }> {
  process.kill(pid, 'SIGUSR2');
  await sleep(PROBE_WAIT_MS);
  return JSON.parse(readFileSync(loopDelayFile, 'utf8').trimEnd().split('\n').at(-1) ?? '');
}

function statuses(answers: readonly Answer[]): string {
  const counts = Object.entries(Object.groupBy(answers, ({ status }) => String(status)));
  return counts
    .map(([status, { length = 0 } = []]) => `${length} × ${status === '0' ? 'no answer' : status}`)
    .join(', ');
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(1);
}

function ms(milliseconds: number): string {
  return `${milliseconds.toFixed(1)} ms`;
}
