// A process that executes one target: `fuzz-process.ts TARGET SEEDS PROGRESS`. It is told ranges of executions by its
// parent, writes the number of each into the file PROGRESS before it starts, so that one that never ends is known by it,
// and answers with what it measured. Limits that nothing in here can hold are held by the parent.
import { openSync, readFileSync, writeFileSync, writeSync } from 'node:fs';
import { SeededRandom } from '../support/seeded-random.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { loadTarget, type TargetName } from './targets.ts';
import { timeUnitMs } from './time-unit.ts';

/** Limit on the processor time of one execution, in units of the machine: some three seconds where nothing else runs. */
const TIME_LIMIT_UNITS = 120;
/** By how much one execution may raise the most memory that the process has had. */
export const MEMORY_LIMIT_BYTES = 512 * 1024 * 1024;

/** Executions `[from, to)` of one seed; with `input`, that one file instead. */
export interface FuzzTask {
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  readonly input?: string;
}

/** The first message of a process. */
export interface FuzzReady {
  /** Limit on the processor time of one execution, in milliseconds. */
  readonly limitMs: number;
}

export interface FuzzFinding {
  readonly index: number;
  readonly problem: string;
}

/** The result of a task as far as it ran. */
export interface FuzzReport {
  readonly executions: number;
  readonly findings: readonly FuzzFinding[];
  readonly slowest: { readonly index: number; readonly ms: number };
  readonly largest: { readonly index: number; readonly bytes: number };
  /** Memory of the process afterwards, in bytes. */
  readonly rssBytes: number;
}

/** The input of an execution: target, seed and number say it all. */
export function inputOf(target: FuzzTarget, seeds: readonly Buffer[], seed: number, index: number): Buffer {
  const random = new SeededRandom(seed, index);
  return target.mutate(random.pick(seeds), random, random.pick(seeds));
}

/** Executes a task. `starting` is told the number of each execution before it starts. */
async function execute(
  target: FuzzTarget,
  seeds: readonly Buffer[],
  task: FuzzTask,
  starting: (index: number) => void,
): Promise<FuzzReport> {
  const findings: FuzzFinding[] = [];
  let slowest = { index: 0, ms: 0 };
  let largest = { index: 0, bytes: 0 };
  for (let index = task.from; index < task.to; index += 1) {
    starting(index);
    const input = task.input === undefined ? inputOf(target, seeds, task.seed, index) : readFileSync(task.input);
    const before = peakBytes();
    const cost = await costOf(target, input, before);
    if (cost.ms > slowest.ms) slowest = { index, ms: cost.ms };
    if (cost.bytes > largest.bytes) largest = { index, bytes: cost.bytes };
    for (const problem of [cost.error, await excessOf(target, input, before, cost)]) {
      if (problem !== null) findings.push({ index, problem });
    }
  }
  return { executions: task.to - task.from, findings, slowest, largest, rssBytes: process.memoryUsage.rss() };
}

/** The cost of one execution: processor time, and memory beyond the most that the process had had before. */
interface Cost {
  readonly ms: number;
  readonly bytes: number;
  /** The error that it threw and may not throw. */
  readonly error: string | null;
}

async function costOf(target: FuzzTarget, input: Buffer, bytesBefore: number): Promise<Cost> {
  const before = process.cpuUsage();
  let error: string | null = null;
  try {
    await target.run(input);
  } catch (thrown) {
    error = (thrown as Error).stack ?? String(thrown);
  }
  const { user, system } = process.cpuUsage(before);
  return { ms: (user + system) / 1000, bytes: peakBytes() - bytesBefore, error };
}

let limitMs = 0;

/** Times that an input is executed again that was over a limit: the machine may be slower now, and garbage not yet collected. */
const MAX_REPEATS = 2;

/** Says which limit an input exceeds each time that it is executed; null where it does not. */
async function excessOf(target: FuzzTarget, input: Buffer, bytesBefore: number, first: Cost): Promise<string | null> {
  let excess = limitsExceededBy(first);
  for (let repeat = 0; excess !== null && repeat < MAX_REPEATS; repeat += 1) {
    limitMs = Math.max(limitMs, TIME_LIMIT_UNITS * timeUnitMs());
    global.gc?.();
    forgetPeak();
    excess = limitsExceededBy(await costOf(target, input, bytesBefore));
  }
  return excess;
}

function limitsExceededBy({ ms, bytes }: Cost): string | null {
  if (ms > limitMs) return `it took ${Math.round(ms)} ms of processor time`;
  return bytes > MEMORY_LIMIT_BYTES ? `it took ${Math.round(bytes / 2 ** 20)} MiB of memory` : null;
}

function peakBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
}

/** Has `peakBytes` begin with what the process holds now (proc_pid_clear_refs(5)). */
function forgetPeak(): void {
  writeFileSync('/proc/self/clear_refs', '5');
}

if (process.send !== undefined) {
  const [name, seedFolder, progressPath] = process.argv.slice(2) as [TargetName, string, string];
  const progress = openSync(progressPath, 'w');
  const word = Buffer.alloc(4);
  const target = await loadTarget(name);
  const seeds = target.seeds(seedFolder);
  // Modules are loaded and compiled before anything is measured.
  for (const seed of seeds) await target.run(seed);
  process.on('message', async (task: FuzzTask) => {
    const report = await execute(target, seeds, task, (index) => {
      word.writeUInt32LE(index);
      writeSync(progress, word, 0, 4, 0);
    });
    process.send?.(report);
  });
  limitMs = TIME_LIMIT_UNITS * timeUnitMs();
  process.send({ limitMs } satisfies FuzzReady);
}
