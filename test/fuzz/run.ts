// `npm run fuzz -- [NAME] [--minutes N | --count N] [--target NAME] [--seed N] [--input FILE]`: mutates media, manifests,
// playlists, listings, subtitles and requests, and has every parser read them in processes with limits on time and memory.
// Prints executions, findings, the slowest and the largest of each target; a finding makes the exit code 1.
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { emptyResult, FuzzProcess, saveFindings, type TargetResult } from './fuzz-pool.ts';
import { makeSeeds } from './make-seeds.ts';
import { TARGET_NAMES, type TargetName } from './targets.ts';

/** Executions that a process is given at once: enough that what they share costs little. */
const BATCH_SIZE = 2_000;
const DEFAULT_MINUTES = 5;
const FINDINGS_FOLDER = 'fuzz-findings';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    minutes: { type: 'string' },
    count: { type: 'string' },
    target: { type: 'string' },
    seed: { type: 'string' },
    input: { type: 'string' },
  },
});
const chosen = values.target ?? positionals[0];
const names = TARGET_NAMES.filter((name) => chosen === undefined || name === chosen);
if (names.length === 0 || (values.input !== undefined && names.length > 1)) {
  console.error(`Name one target: ${TARGET_NAMES.join(', ')}`);
  process.exit(2);
}
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const seedFolder = mkdtempSync(join(tmpdir(), 'attestream-fuzz-'));
const results = new Map<TargetName, TargetResult>(names.map((name) => [name, emptyResult()]));
try {
  console.log(`seed ${seed}; making the files that are mutated …`);
  await makeSeeds(seedFolder);
  await Promise.all(Array.from({ length: availableParallelism() }, (_, number) => work(number)));
  await report();
} finally {
  rmSync(seedFolder, { recursive: true, force: true });
}

/** Takes one target after the other until all have had their executions, or their time. */
async function work(number: number): Promise<void> {
  for (let name = names.shift(); name !== undefined; name = names.shift()) {
    const target = new FuzzProcess(name, seedFolder, number);
    await fuzz(target, results.get(name) as TargetResult);
    await target.end();
    console.log(`${name} is done`);
  }
}

async function fuzz(target: FuzzProcess, result: TargetResult): Promise<void> {
  if (values.input !== undefined) return await target.run({ seed, from: 0, to: 1, input: values.input }, result);
  const count = values.count === undefined ? Number.POSITIVE_INFINITY : Math.ceil(Number(values.count) / results.size);
  const minutes = values.count === undefined ? Number(values.minutes ?? DEFAULT_MINUTES) : Number.POSITIVE_INFINITY;
  const seconds = (minutes * 60 * Math.min(availableParallelism(), results.size)) / results.size;
  while (result.executions < count && result.seconds < seconds) {
    const from = result.executions;
    await target.run({ seed, from, to: Math.min(from + BATCH_SIZE, count) }, result);
  }
}

async function report(): Promise<void> {
  const row = (...cells: readonly (string | number)[]) =>
    console.log(
      cells.map((cell, index) => (index === 0 ? String(cell).padEnd(16) : String(cell).padStart(12))).join(''),
    );
  console.log('\nThe slowest is in milliseconds of processor time, the largest in MiB that it added to the process.');
  row('target', 'executions', 'a second', 'findings', 'slowest', 'largest');
  let executions = 0;
  for (const [name, result] of results) {
    executions += result.executions;
    const rate = Math.round(result.executions / Math.max(result.seconds, 0.001));
    const largest = (result.largest.bytes / 2 ** 20).toFixed(1);
    row(name, result.executions, rate, result.findings.length, result.slowest.ms.toFixed(1), largest);
  }
  console.log(`\n${executions} executions with seed ${seed}.`);
  for (const [name, result] of results) await reportFindings(name, result);
}

async function reportFindings(name: TargetName, result: TargetResult): Promise<void> {
  const options = { seed, seedFolder, folder: FINDINGS_FOLDER };
  const paths = values.input === undefined ? await saveFindings(name, result, options) : [values.input];
  for (const [index, { problem }] of result.findings.entries()) {
    console.log(`\nFOUND ${paths[index]}\n  ${problem.replaceAll('\n', '\n  ')}`);
  }
  if (result.findings.length > 0) process.exitCode = 1;
}
