import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { PgBoss } from 'pg-boss';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import type { Submission } from '#jobs/job.ts';
import { Jobs } from '#jobs/jobs.ts';
import type { Log } from '#telemetry/logger.ts';
import { type PostgresServer, startPostgres } from '../test/support/servers/postgres-server.ts';
import type { BenchContext } from './bench-context.ts';
import { type Contender, measureRounds, median, progress, type Series } from './measuring.ts';
import { ratioTarget, targetsTable } from './report.ts';

const JOBS = 500;
const WARM_UP_JOBS = 50;
/** Time that a job takes; jobs-worker.ts waits as long. */
const WORK_MS = 5;
/** Jobs that are worked on at once. */
const WORKERS = 4;
const JOB_BOUND_MS = 60_000;

/** Connections of a node of a cluster. */
const CONNECTIONS = 10;
const QUEUE = 'bench';

const EMBEDDED = 'service, embedded store';
const CLUSTERED = 'service, PostgreSQL';
const BARE = 'pg-boss alone';
const MIN_OF_BARE = 0.5;

/** A queue with the workers that do its jobs. */
interface Engine extends AsyncDisposable {
  readonly name: string;
  /** Submits so many jobs at once, and waits for all of them to end. */
  run(count: number): Promise<Times>;
}

/** Milliseconds since the first submission. */
interface Times {
  readonly submittedMs: number;
  readonly endedMs: number;
}

/** Many jobs of one short input each on both engines, beside what pg-boss does without a service around it. */
export async function jobsPart(context: BenchContext): Promise<string> {
  progress('starting PostgreSQL');
  await using stack = new AsyncDisposableStack();
  const server = await startPostgres({ after: (tearDown) => stack.defer(tearDown) }, ['fsync=on']);
  const database = await server.createDatabase();
  const engines = [
    stack.use(await openService(EMBEDDED, configFor(context, 'embedded'))),
    stack.use(await openService(CLUSTERED, configFor(context, 'clustered', { database_url: database }))),
    stack.use(await openBare(server)),
  ];
  for (const engine of engines) await engine.run(WARM_UP_JOBS);

  const submissions = new Map(engines.map(({ name }) => [name, [] as number[]]));
  const contenders: Contender[] = engines.map((engine) => ({
    name: engine.name,
    measure: async () => {
      const { submittedMs, endedMs } = await engine.run(JOBS);
      submissions.get(engine.name)?.push(submittedMs);
      return endedMs;
    },
  }));
  const ends = await measureRounds(contenders, context.rounds);
  const rates = (series: ReadonlyMap<string, Series>, name: string): Series =>
    (series.get(name) ?? []).map((milliseconds) => (JOBS / milliseconds) * 1000);
  return [
    `## ${JOBS} jobs of one input that takes ${WORK_MS} ms, ${WORKERS} at once (${context.rounds} rounds)`,
    ratesTable(engines.map(({ name }) => ({ name, submitted: rates(submissions, name), ended: rates(ends, name) }))),
    '### Targets',
    targetsTable([
      ratioTarget(
        `jobs on PostgreSQL: at least ${MIN_OF_BARE} times as many a second as pg-boss alone`,
        [rates(ends, CLUSTERED), rates(ends, BARE)],
        { atLeast: MIN_OF_BARE },
      ),
    ]),
  ].join('\n\n');
}

interface Rates {
  readonly name: string;
  readonly submitted: Series;
  readonly ended: Series;
}

function ratesTable(all: readonly Rates[]): string {
  const rows = all.map(
    ({ name, submitted, ended }) => `| ${name} | ${medianAndRange(submitted)} | ${medianAndRange(ended)} |`,
  );
  return [
    '| | submissions a second | range | jobs a second, end to end | range |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

function medianAndRange(rates: Series): string {
  const whole = (rate: number): string => String(Math.round(rate));
  return `${whole(median(rates))} | ${whole(Math.min(...rates))} – ${whole(Math.max(...rates))}`;
}

/** Nodes that share a database must sign as one; nothing is signed here. */
function configFor({ folder, identity }: BenchContext, name: string, database?: { database_url: string }): Config {
  const dataDir = join(folder, name);
  return configSchema.parse({
    jobs: { data_dir: dataDir, scratch_dir: join(dataDir, 'scratch'), ...database },
    signing: { certificate_path: identity.certificatePath, private_key_path: identity.keyPath },
  }) as Config;
}

async function openService(name: string, config: Config): Promise<Engine> {
  const ignore = () => undefined;
  const log: Log = { info: ignore, warn: ignore, error: (fields, message) => console.error(message, fields) };
  const workerEntry = new URL('./jobs-worker.ts', import.meta.url);
  const jobs = new Jobs({ config, workerEntry, log, maxRunningInputs: WORKERS });
  await jobs.start();
  return {
    name,
    run: async (count) => {
      const startedAt = performance.now();
      const submitted = await Promise.all(Array.from({ length: count }, (_, index) => jobs.submit(submission(index))));
      const submittedMs = performance.now() - startedAt;
      for (const { job_id: jobId } of submitted) {
        const job = await jobs.whenFinished(jobId, JOB_BOUND_MS, new AbortController().signal);
        if (job?.status !== 'succeeded') throw new Error(`job ${jobId} did not succeed`);
      }
      return { submittedMs, endedMs: performance.now() - startedAt };
    },
    [Symbol.asyncDispose]: () => jobs.stop(0),
  };
}

function submission(index: number): Submission {
  const request = { inputs: [{ type: 'local_file_path' as const, path: `/in/${index}` }] };
  return { operation: 'c2pa-video', request, sync: false };
}

/** As the service uses it: it is told of new jobs, and looks again as soon as one is done. */
async function openBare(server: PostgresServer): Promise<Engine> {
  const connectionString = await server.createDatabase();
  const boss = new PgBoss({ connectionString, useListenNotify: true, max: CONNECTIONS });
  boss.on('error', (error) => console.error('pg-boss', error));
  await boss.start();
  await boss.createQueue(QUEUE, { notify: true, heartbeatSeconds: 10 });
  const workers: string[] = [];
  let done = 0;
  const look = (index: number): void => boss.notifyWorker(workers[index] ?? '');
  for (let index = 0; index < WORKERS; index += 1) {
    const options = { batchSize: 1, pollingIntervalSeconds: 2, heartbeatRefreshSeconds: 2 };
    const worker = await boss.work(QUEUE, options, async () => {
      await sleep(WORK_MS);
      done += 1;
      setImmediate(look, index);
    });
    workers.push(worker);
  }
  return {
    name: BARE,
    run: async (count) => {
      const target = done + count;
      const startedAt = performance.now();
      await Promise.all(Array.from({ length: count }, (_, index) => boss.send(QUEUE, { index })));
      const submittedMs = performance.now() - startedAt;
      for (const index of workers.keys()) look(index);
      while (done < target) await sleep(1);
      return { submittedMs, endedMs: performance.now() - startedAt };
    },
    [Symbol.asyncDispose]: () => boss.stop({ graceful: false }),
  };
}
