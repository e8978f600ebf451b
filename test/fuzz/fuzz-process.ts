// A process that executes one target: `fuzz-process.ts TARGET SEEDS PROGRESS`. It is told ranges of executions by its
// parent, writes the number of each into the file PROGRESS before it starts, so that one that never ends is known by it,
// and answers with what it measured. Limits that nothing in here can hold are held by the parent.
import { openSync, readFileSync, writeSync } from 'node:fs';
import { SeededRandom } from '../support/seeded-random.ts';
import type { FuzzTarget } from './fuzz-target.ts';
import { loadTarget, type TargetName } from './targets.ts';

/** Processor time of one execution. */
export const TIME_LIMIT_MS = 3_000;
/** By how much one execution may raise the most memory that the process has had. */
export const MEMORY_LIMIT_BYTES = 512 * 1024 * 1024;

/** Executions `[from, to)` of one seed; with `input`, that one file instead. */
export interface FuzzTask {
  readonly seed: number;
  readonly from: number;
  readonly to: number;
  readonly input?: string;
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
  let mostBytes = peakBytes();
  for (let index = task.from; index < task.to; index += 1) {
    starting(index);
    const input = task.input === undefined ? inputOf(target, seeds, task.seed, index) : readFileSync(task.input);
    const before = process.cpuUsage();
    try {
      await target.run(input);
    } catch (error) {
      findings.push({ index, problem: (error as Error).stack ?? String(error) });
    }
    const { user, system } = process.cpuUsage(before);
    const ms = (user + system) / 1000;
    const bytes = peakBytes() - mostBytes;
    mostBytes += bytes;
    if (ms > slowest.ms) slowest = { index, ms };
    if (bytes > largest.bytes) largest = { index, bytes };
    if (ms > TIME_LIMIT_MS) findings.push({ index, problem: `it took ${Math.round(ms)} ms of processor time` });
    if (bytes > MEMORY_LIMIT_BYTES)
      findings.push({ index, problem: `it took ${Math.round(bytes / 2 ** 20)} MiB of memory` });
  }
  return { executions: task.to - task.from, findings, slowest, largest, rssBytes: process.memoryUsage.rss() };
}

function peakBytes(): number {
  return process.resourceUsage().maxRSS * 1024;
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
  process.send('ready');
}
