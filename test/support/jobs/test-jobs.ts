import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import type { JobResultResponse } from '#contract/job.ts';
import { type JobSnapshot, jobJson, type Submission } from '#jobs/job.ts';
import { Jobs, type JobsOptions } from '#jobs/jobs.ts';
import type { ResultEntry } from '#jobs/result-entries.ts';
import { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import { temporaryFolder } from '../temporary-folder.ts';

export const SCRIPTED_WORKER = new URL('./scripted-worker.ts', import.meta.url);

/** A generous bound: it is passed only where something hangs. */
export const HANG_MS = 600_000;

const ignore = (): void => undefined;

export const NO_LOG: Log = { info: ignore, warn: ignore, error: ignore };

/** A log that keeps what it is told. */
export function keptLog(): Log & { readonly lines: { level: string; fields: object; message: string }[] } {
  const lines: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message });
  return { lines, info: at('info'), warn: at('warn'), error: at('error') };
}

/** A test, or all tests of a file, after which something is torn down. */
export interface Scope {
  after(tearDown: () => Promise<void>): void;
}

/**
 * Returns a function that resolves with the same for all tests of a file or suite that do not mind each other. It is made when
 * it is first asked for, and torn down after the last test: to open a store costs a fifth of a second of processor time.
 */
export function shared<Made>(make: (scope: Scope) => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  const tearDowns: (() => Promise<void>)[] = [];
  after(async () => {
    for (const tearDown of tearDowns.reverse()) await tearDown();
  });
  return () => (made ??= make({ after: (tearDown) => void tearDowns.push(tearDown) }));
}

/** The configuration of jobs, of which one may take all workers, on whatever host. */
export function configFor(dataDir: string, worker: Partial<Config['worker']> = {}): Config {
  const jobs = { data_dir: dataDir, scratch_dir: join(dataDir, 'scratch') };
  return configSchema.parse({ jobs, worker: { default_max_files_parallel: 8, ...worker } }) as Config;
}

/** The configuration of a node: a data folder of its own, and a database that it shares. */
export function nodeConfig(dataDir: string, url: string, jobs: Partial<Config['jobs']> = {}): Config {
  const config = configFor(dataDir);
  return { ...config, jobs: { ...config.jobs, database_url: url, ...jobs } };
}

/** A job whose inputs are scripts for the scripted worker. */
export function scripts(inputs: readonly string[], more: Partial<Submission> = {}): Submission {
  return {
    operation: 'c2pa-video',
    request: { inputs: inputs.map((path) => ({ type: 'local_file_path', path })) },
    sync: false,
    ...more,
  };
}

/** Started jobs in a folder of their own, stopped when the test ends. */
export async function startedJobs(t: Scope, options: Partial<JobsOptions> = {}): Promise<Jobs> {
  const launcher = new Launcher({ variables: ['SCRIPTED_START'] });
  const config = options.config ?? configFor(temporaryFolder());
  const jobs = new Jobs({
    workerEntry: SCRIPTED_WORKER,
    log: NO_LOG,
    maxRunningInputs: 2,
    launcher,
    ...options,
    config,
  });
  await jobs.start();
  t.after(() => jobs.stop(0));
  return jobs;
}

/** The job when it has ended. */
export async function ended(jobs: Jobs, jobId: string): Promise<JobResultResponse> {
  const job = await jobs.whenFinished(jobId, HANG_MS, new AbortController().signal);
  if (job === null) throw new Error(`job ${jobId} does not end`);
  return asCallersSee(job);
}

export function asCallersSee(job: JobSnapshot): JobResultResponse {
  return JSON.parse(jobJson(job));
}

export function resultsOf(job: JobSnapshot | null): readonly ResultEntry[] {
  if (job === null) throw new Error('there is no such job');
  return JSON.parse(job.resultsJson);
}

/** Looks every few milliseconds until a condition holds. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const deadline = Date.now() + HANG_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error('what was waited for does not come');
    await sleep(5);
  }
}

/** The lines that the `append` steps of scripts wrote: input, attempt, process. */
export async function linesOf(file: string): Promise<{ input: number; attempt: number; pid: number }[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' ').map(Number))
    .map(([input = -1, attempt = -1, pid = -1]) => ({ input, attempt, pid }));
}
