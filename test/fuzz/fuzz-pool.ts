import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type FuzzFinding,
  type FuzzReady,
  type FuzzReport,
  type FuzzTask,
  inputOf,
  MEMORY_LIMIT_BYTES,
} from './fuzz-process.ts';
import { loadTarget, type TargetName } from './targets.ts';

/** A process is killed after this many times the processor time that an execution may take: it repeats what takes longer. */
const KILL_FACTOR = 10;
/** Interval at which the processes are sampled. */
const WATCH_INTERVAL_MS = 200;
/** A process that holds more than this is killed, in bytes: what it runs has taken the difference to an idle one. */
const PROCESS_LIMIT_BYTES = 1024 * 1024 * 1024 + MEMORY_LIMIT_BYTES;
/** A process that holds more than this after its task is replaced, so that findings are due to one execution. */
const RECYCLED_BYTES = 600 * 1024 * 1024;
/** An execution that neither ends nor takes any processor time for as long as this is given up. */
const STALLED_MS = 600_000;
/** The unit of processor time in /proc, in milliseconds. */
const TICK_MS = 10;
const PAGE_BYTES = 4096;

/** The result of a target. */
export interface TargetResult {
  executions: number;
  seconds: number;
  readonly findings: FuzzFinding[];
  slowest: FuzzReport['slowest'];
  largest: FuzzReport['largest'];
}

/** Runs one target in a process of its own, which is killed and started anew whenever an execution passes a limit. */
export class FuzzProcess {
  readonly #name: TargetName;
  readonly #folder: string;
  readonly #progressPath: string;
  #child: ChildProcess | null = null;
  #killMs = 0;

  /** `folder` holds the seeds. */
  constructor(name: TargetName, folder: string, number: number) {
    this.#name = name;
    this.#folder = folder;
    this.#progressPath = join(folder, `progress-${number}`);
  }

  /** Runs all executions of a task, going on behind those that are killed. */
  async run(task: FuzzTask, result: TargetResult): Promise<void> {
    const started = performance.now();
    for (let from = task.from; from < task.to; ) {
      const outcome = await this.#attempt({ ...task, from });
      if ('index' in outcome) {
        result.findings.push(outcome);
        result.executions += outcome.index - from + 1;
        from = outcome.index + 1;
        continue;
      }
      result.executions += outcome.executions;
      result.findings.push(...outcome.findings);
      if (outcome.slowest.ms > result.slowest.ms) result.slowest = outcome.slowest;
      if (outcome.largest.bytes > result.largest.bytes) result.largest = outcome.largest;
      if (outcome.rssBytes > RECYCLED_BYTES) await this.end();
      break;
    }
    result.seconds += (performance.now() - started) / 1000;
  }

  async end(): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  }

  async #attempt(task: FuzzTask): Promise<FuzzReport | FuzzFinding> {
    this.#child ??= await this.#start();
    const child = this.#child;
    const { promise, resolve } = Promise.withResolvers<FuzzReport | FuzzFinding>();
    const crashed = (code: number | null, signal: string | null) =>
      resolve({ index: this.#current(), problem: `the process ended (${signal ?? code})${this.#complaint}` });
    child.once('message', resolve);
    child.once('exit', crashed);
    const watch = new Watch(child.pid as number, this.#killMs);
    const timer = setInterval(() => {
      const index = this.#current();
      const problem = watch.problemOf(index);
      if (problem !== null) resolve({ index, problem });
    }, WATCH_INTERVAL_MS);
    child.send(task);
    const outcome = await promise;
    clearInterval(timer);
    child.removeAllListeners('exit').removeAllListeners('message');
    if ('index' in outcome) await this.end();
    return outcome;
  }

  #complaint = '';

  async #start(): Promise<ChildProcess> {
    writeFileSync(this.#progressPath, Buffer.alloc(4));
    const child = fork(
      fileURLToPath(new URL('fuzz-process.ts', import.meta.url)),
      [this.#name, this.#folder, this.#progressPath],
      {
        stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
        execArgv: ['--max-old-space-size=2048', '--expose-gc'],
      },
    );
    this.#complaint = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#complaint = `${this.#complaint}\n${text}`.slice(-2_000);
    });
    const { promise, resolve, reject } = Promise.withResolvers<FuzzReady>();
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`${this.#name} does not start (${code}): ${this.#complaint}`)));
    this.#killMs = KILL_FACTOR * (await promise).limitMs;
    child.removeAllListeners('exit').removeAllListeners('message');
    return child;
  }

  #current(): number {
    const word = readFileSync(this.#progressPath);
    return word.length < 4 ? 0 : word.readUInt32LE();
  }
}

/** Looks at a process from outside: one that never comes back to its event loop can be told in no other way. */
class Watch {
  readonly #pid: number;
  readonly #killMs: number;
  #index = -1;
  /** Processor time when the execution started, and at the last look. */
  #startMs = 0;
  #cpuMs = 0;
  #movedAt = performance.now();

  constructor(pid: number, killMs: number) {
    this.#pid = pid;
    this.#killMs = killMs;
  }

  /** Returns what is wrong with the execution that is running; null where nothing is. */
  problemOf(index: number): string | null {
    let cpuMs: number;
    let rssBytes: number;
    try {
      // The name of the program, in parentheses, may hold spaces.
      const fields = readFileSync(`/proc/${this.#pid}/stat`, 'utf8')
        .replace(/^.*\) /, '')
        .split(' ');
      cpuMs = (Number(fields[11]) + Number(fields[12])) * TICK_MS;
      rssBytes = Number(fields[21]) * PAGE_BYTES;
    } catch {
      // It has just ended, and says so by itself.
      return null;
    }
    if (index !== this.#index) [this.#index, this.#startMs] = [index, cpuMs];
    if (cpuMs !== this.#cpuMs) [this.#cpuMs, this.#movedAt] = [cpuMs, performance.now()];
    if (rssBytes > PROCESS_LIMIT_BYTES) return `it held ${Math.round(rssBytes / 2 ** 20)} MiB of memory and was killed`;
    if (cpuMs - this.#startMs > this.#killMs)
      return `it was killed after ${cpuMs - this.#startMs} ms of processor time`;
    return performance.now() - this.#movedAt > STALLED_MS ? `it did nothing for ${STALLED_MS} ms` : null;
  }
}

export function emptyResult(): TargetResult {
  return { executions: 0, seconds: 0, findings: [], slowest: { index: 0, ms: 0 }, largest: { index: 0, bytes: 0 } };
}

/** Writes the inputs of findings to files and returns their paths. */
export async function saveFindings(
  name: TargetName,
  { findings }: TargetResult,
  { seed, seedFolder, folder }: { seed: number; seedFolder: string; folder: string },
): Promise<string[]> {
  if (findings.length === 0) return [];
  mkdirSync(folder, { recursive: true });
  const target = await loadTarget(name);
  const seeds = target.seeds(seedFolder);
  return findings.map(({ index }) => {
    const path = join(folder, `${name}-${seed}-${index}`);
    writeFileSync(path, inputOf(target, seeds, seed, index));
    return path;
  });
}
