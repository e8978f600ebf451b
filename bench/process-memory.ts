import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setInterval } from 'node:timers';

const SAMPLE_INTERVAL_MS = 20;

/** The largest sums over a process and all its descendants that were seen, in bytes. */
export interface PeakMemory {
  /** Proportional set size: memory that several processes share counts once. What the processes take together. */
  readonly pssBytes: number;
  /** Resident set size: shared memory counts in every process. Never less than the former. */
  readonly rssBytes: number;
}

/** Samples the memory of a process and its descendants for as long as `work` runs. */
export async function peakMemoryDuring(pid: number, work: () => Promise<unknown>): Promise<PeakMemory> {
  let pssBytes = 0;
  let rssBytes = 0;
  const sample = (): void => {
    const rollups = processTree(pid).map(rollupOf);
    pssBytes = Math.max(pssBytes, sumOf(rollups, 'Pss'));
    rssBytes = Math.max(rssBytes, sumOf(rollups, 'Rss'));
  };
  sample();
  const timer = setInterval(sample, SAMPLE_INTERVAL_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return { pssBytes, rssBytes };
}

/** A process and all its descendants. */
export function processTree(pid: number): number[] {
  return [pid, ...descendantsOf(pid)];
}

function descendantsOf(pid: number): number[] {
  const children = threadsOf(pid).flatMap((thread) =>
    read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  );
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

function threadsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    // The process has ended since it was listed.
    return [];
  }
}

function rollupOf(pid: number): string {
  return read(`/proc/${pid}/smaps_rollup`);
}

function sumOf(rollups: readonly string[], field: 'Pss' | 'Rss'): number {
  const pattern = new RegExp(`^${field}:\\s+(\\d+) kB`, 'm');
  return rollups.reduce((sum, rollup) => sum + Number(pattern.exec(rollup)?.[1] ?? 0) * 1024, 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended since it was listed.
    return '';
  }
}

/** The peak memory of a program of this folder, from its start to its end. */
export async function peakMemoryOfProgram(script: string, parameters: readonly string[]): Promise<PeakMemory> {
  const path = new URL(script, import.meta.url).pathname;
  const child = spawn(process.execPath, [path, ...parameters], { stdio: ['ignore', 'ignore', 'inherit'] });
  return peakMemoryDuring(child.pid as number, async () => {
    const [status] = await once(child, 'exit');
    if (status !== 0) throw new Error(`${script} ended with status ${status}`);
  });
}
