import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, copyFileSync, existsSync, fstatSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Agent, fetch, type Response } from 'undici';
import { developmentIdentityFile } from '#config/identities.ts';
import { RELEASE } from '#config/release.ts';
import type { JobResponse, JobResultResponse } from '#contract/job.ts';
import { loadDevelopmentIdentity } from '#provenance/identity/development-identity.ts';

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..');
/** The data folder of the development identity that all services started here sign with. */
const SHARED_IDENTITY = join(ROOT, 'node_modules/.cache/attestream-identity');
/** A generous bound on starts, sync waits and stops: it is passed only where something hangs. */
const HANG_MS = 600_000;
const LOOK_INTERVAL_MS = 20;

export interface ServiceOptions {
  /** The folder for the service's data, its outputs and its log. Made where it is missing. */
  readonly folder: string;
  /** Configuration beside the embedded defaults, as `SERVICE__SECTION__KEY` variables. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The program to run instead of the service itself. */
  readonly program?: string;
  /** Arguments for Node, before the program. */
  readonly nodeArguments?: readonly string[];
  /** Arguments of the program. */
  readonly words?: readonly string[];
  /** Told the service's process as soon as there is one, long before it is ready. */
  readonly onSpawn?: (pid: number) => void;
}

/** A service of its own process, spoken to over HTTP as any client would. */
export interface RunningService {
  readonly base: string;
  readonly pid: number;
  /** One JSON object a line. */
  readonly logPath: string;
  /** Submits a job and returns its identifier. `path` is the asynchronous route, such as `/v2/c2pa/audio`. */
  submit(path: string, body: unknown): Promise<string>;
  /** Submits a job on a synchronous route, such as `/v2/sync/c2pa/video`, and waits for its end. */
  runSync(path: string, body: unknown): Promise<JobResultResponse>;
  lookUp(jobId: string): Promise<JobResultResponse>;
  /** Looks a job up until it has ended. */
  waitFor(jobId: string, look?: WaitOptions): Promise<JobResultResponse>;
  /** Settles when the service's process is gone, whatever ended it. */
  readonly ended: Promise<unknown>;
  /** Asks the service to end (SIGTERM) and waits until it has. */
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface WaitOptions {
  /** Time between two looks, where `onLook` is given. */
  readonly intervalMs?: number;
  /** Told the job again and again. Without it, the job is looked up when it has ended. */
  readonly onLook?: (job: JobResultResponse) => void;
}

/**
 * Starts the service on a loopback port that the system chooses, and returns once it is ready. The port is read from the line
 * of its log that says so (docs/production.md), so its level stays `info`.
 */
export async function startService({
  folder,
  settings = {},
  program = join(ROOT, 'src/main.ts'),
  nodeArguments = [],
  words = [],
  onSpawn,
}: ServiceOptions): Promise<RunningService> {
  mkdirSync(folder, { recursive: true });
  if (settings['SERVICE__JOBS__DATA_DIR'] === undefined) await giveIdentity(join(folder, 'data'));
  const logPath = join(folder, 'service.log');
  const log = openSync(logPath, 'a');
  const startOffset = fstatSync(log).size;
  const child = spawn(process.execPath, [...nodeArguments, program, ...words], {
    cwd: folder,
    stdio: ['ignore', log, log],
    env: {
      ...process.env,
      SERVICE__SERVER__BIND_ADDR: '127.0.0.1:0',
      SERVICE__SERVER__SYNC_TIMEOUT_MS: String(HANG_MS),
      SERVICE__JOBS__DATA_DIR: join(folder, 'data'),
      SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: join(folder, 'output'),
      ...settings,
    },
  });
  closeSync(log);
  if (child.pid !== undefined) onSpawn?.(child.pid);
  return serviceOf(child, await baseOf(child, logPath, startOffset), logPath);
}

/** Copies a development identity into a new data folder: making one takes a third of a second. */
async function giveIdentity(dataDir: string): Promise<void> {
  const identityDir = join(dataDir, 'identity');
  if (existsSync(identityDir)) return;
  const { file } = await loadDevelopmentIdentity(developmentIdentityFile(SHARED_IDENTITY));
  mkdirSync(identityDir, { recursive: true, mode: 0o700 });
  copyFileSync(file, join(identityDir, basename(file)));
}

function serviceOf(child: ChildProcess, base: string, logPath: string): RunningService {
  const lookUp = (jobId: string) => getJson<JobResultResponse>(`${base}/v2/jobs/${jobId}`);
  const stop = () => stopChild(child);
  return {
    base,
    pid: child.pid as number,
    ended: once(child, 'exit'),
    logPath,
    submit: async (path, body) => (await postJson<JobResponse>(base + path, body)).job_id,
    runSync: (path, body) => postJson<JobResultResponse>(base + path, body),
    lookUp,
    waitFor: async (jobId, { intervalMs = 50, onLook } = {}) => {
      for (;;) {
        const job = await lookUp(jobId);
        onLook?.(job);
        if (job.status === 'succeeded' || job.status === 'failed') return job;
        if (onLook === undefined) await endOfEvents(base, jobId);
        else await sleep(intervalMs);
      }
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * Waits until the process says in its log on which address it listens. It alone writes behind `startOffset`, so no other
 * service is taken for it.
 */
async function baseOf(child: ChildProcess, logPath: string, startOffset: number): Promise<string> {
  const deadline = Date.now() + HANG_MS;
  while (Date.now() < deadline && child.exitCode === null && child.signalCode === null) {
    const lines = readFileSync(logPath).subarray(startOffset).toString().split('\n').slice(0, -1);
    const ready = lines.find((line) => line.includes(`"msg":"${RELEASE.product} is ready"`));
    if (ready !== undefined) {
      const { address }: { address: AddressInfo } = JSON.parse(ready);
      return `http://${address.address}:${address.port}`;
    }
    await sleep(LOOK_INTERVAL_MS);
  }
  child.kill('SIGKILL');
  throw new Error(`The service did not start. Its log (${logPath}) ends with:\n${endOf(logPath)}`);
}

/** Waits until the stream of a job's events ends: with the job, or with the service. */
async function endOfEvents(base: string, jobId: string): Promise<void> {
  const answer = await fetch(`${base}/v2/jobs/${jobId}/events`, { dispatcher });
  await answer.body?.pipeTo(new WritableStream());
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), HANG_MS);
  await ended;
  clearTimeout(timer);
}

async function postJson<Reply>(url: string, body: unknown): Promise<Reply> {
  return replyOf(await fetch(url, { method: 'POST', headers: JSON_TYPE, body: JSON.stringify(body), dispatcher }));
}

async function getJson<Reply>(url: string): Promise<Reply> {
  return replyOf(await fetch(url, { dispatcher }));
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** The service bounds its answers: a client of its own would give up after five minutes. */
const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0 });

async function replyOf<Reply>(answer: Response): Promise<Reply> {
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${text}`);
  return JSON.parse(text) as Reply;
}

function endOf(path: string): string {
  return readFileSync(path, 'utf8').trimEnd().split('\n').slice(-20).join('\n');
}
