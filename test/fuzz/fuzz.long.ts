import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { emptyResult, FuzzProcess } from './fuzz-pool.ts';
import { HOSTILE_INPUTS } from './hostile-inputs.ts';
import { makeSeeds } from './make-seeds.ts';
import { TARGET_NAMES, type TargetName } from './targets.ts';

/** Executions of each target; `npm run fuzz` makes more. */
const EXECUTIONS = 200;
const SEED = 1;

const folder = mkdtempSync(join(tmpdir(), 'attestream-fuzz-'));
const processes = new Map(TARGET_NAMES.map((name, number) => [name, new FuzzProcess(name, folder, number)]));

function processOf(name: TargetName): FuzzProcess {
  return processes.get(name) as FuzzProcess;
}

describe('whatever comes in is read or refused, within bounds of time and memory', { concurrency: 2 }, () => {
  before(() => makeSeeds(folder));
  after(async () => {
    for (const each of processes.values()) await each.end();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const name of TARGET_NAMES) {
    test(name, async () => {
      for (const hostile of HOSTILE_INPUTS.filter(({ target }) => target === name)) {
        const input = join(folder, `hostile-${name}`);
        writeFileSync(input, hostile.input(folder));
        const result = emptyResult();
        await processOf(name).run({ seed: SEED, from: 0, to: 1, input }, result);
        assert.deepEqual(result.findings, [], hostile.name);
      }
      const result = emptyResult();
      await processOf(name).run({ seed: SEED, from: 0, to: EXECUTIONS }, result);
      assert.deepEqual(result.findings, []);
      await processOf(name).end();
    });
  }
});
