import { execFile } from 'node:child_process';
import { rmSync, statSync } from 'node:fs';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Measurements of one contender, in the order they were made. */
export type Series = readonly number[];

/** Something that is measured once a round. */
export interface Contender {
  readonly name: string;
  /** The most rounds that it takes part in, where it takes long; else all of them. */
  readonly maxRounds?: number;
  /** Does the work and returns what it took, in milliseconds. */
  measure(): Promise<number>;
}

/**
 * Measures all contenders in turn, `rounds` times, so that what else the machine does meets them alike. Before each
 * measurement everything that is still to be written goes to the disk.
 */
export async function measureRounds(contenders: readonly Contender[], rounds: number): Promise<Map<string, Series>> {
  const series = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round += 1) {
    for (const { name, measure, maxRounds = rounds } of contenders) {
      if (round > maxRounds) continue;
      progress(`round ${round} of ${rounds}: ${name}`);
      await run('sync');
      series.get(name)?.push(await measure());
    }
  }
  progress('');
  return series;
}

/** Runs a program of this folder, which prints the milliseconds that its work took. */
export async function measureProgram(script: string, parameters: readonly string[]): Promise<number> {
  const path = new URL(script, import.meta.url).pathname;
  const { stdout } = await run(process.execPath, [path, ...parameters], { maxBuffer: 1024 * 1024 });
  return Number(stdout.trim());
}

/** Copies a file with `cp`, syncs the copy, and removes it again, which is not measured. */
export async function timeCp(from: string, to: string): Promise<number> {
  const startedAt = performance.now();
  await run('cp', [from, to]);
  await run('sync', [to]);
  const milliseconds = performance.now() - startedAt;
  if (statSync(to).size !== statSync(from).size) throw new Error('cp made a file of another size');
  rmSync(to);
  return milliseconds;
}

/** Has `sha256sum` hash a file. */
export async function timeSha256sum(path: string): Promise<number> {
  const startedAt = performance.now();
  await run('sha256sum', [path]);
  return performance.now() - startedAt;
}

export function median(values: Series): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : (upper + (sorted[middle - 1] ?? upper)) / 2;
}

/** Shows what is going on, on one line of standard error that the next call replaces. */
export function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  else if (text !== '') process.stderr.write(`${text}\n`);
}
