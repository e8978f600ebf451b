import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { AppError } from '#errors/app-error.ts';
import { HangWatch } from '#jobs/outages/hang-watch.ts';
import { Outages } from '#jobs/outages/outages.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';

/** A watch of runs that need something and are silent. `answer` ends the probe of a kind; `held` has what runs were stopped by. */
function watched(t: TestContext, runs: readonly (readonly [need: string, idleMs: number, signatureMs?: number])[]) {
  t.mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  const probes = new Map<string, PromiseWithResolvers<string | null>>();
  const held: string[] = [];
  const outages = new Outages({
    probes: {
      problemOf({ kind }) {
        const answer = Promise.withResolvers<string | null>();
        probes.set(kind, answer);
        return answer.promise;
      },
      minPauseMs: () => 0,
    },
    log: NO_LOG,
    outageHours: 24,
    signers: () => null,
    changed: () => undefined,
  });
  const made = runs.map(([need, idleMs, signatureMs = 0]) => ({
    ...{ lease: { needs: [need] }, idleMs, signatureMs, heldUpBy: null as AppError | null },
    holdUp(error: AppError) {
      this.heldUpBy = error;
      held.push(`${need} ${error.reason}`);
    },
  }));
  const watch = new HangWatch(new Set(made), outages);
  t.after(() => {
    watch.stop();
    outages.stop();
  });
  const answer = async (kind: string, problem: string | null) => {
    probes.get(kind)?.resolve(problem);
    await new Promise(setImmediate);
  };
  return { outages, runs: made, probes, held, answer };
}

test('inputs without progress are stopped by what hangs, each as soon as that is certain', async (t) => {
  const { probes, held, answer } = watched(t, [
    ['scratch_folder', 11_000],
    ['output_bucket:a', 11_000],
    ['output_folder', 11_000],
    ['input_folder:b', 0],
    ['signer:news', 11_000],
  ]);
  t.mock.timers.tick(1_000);
  assert.deepEqual([...probes.keys()].sort(), ['output_bucket', 'output_folder', 'scratch_folder']);
  await answer('output_bucket', 'it hangs');
  assert.deepEqual(held, ['output_bucket:a S3_UNREACHABLE']);
  await answer('scratch_folder', null);
  await answer('output_folder', 'it hangs');
  assert.deepEqual(held, ['output_bucket:a S3_UNREACHABLE', 'output_folder FOLDER_HANGS']);
});

test('an input that made progress a moment ago is not stopped', async (t) => {
  const { outages, held, answer } = watched(t, [['output_folder', 2_000]]);
  t.mock.timers.tick(1_000);
  await answer('output_folder', 'it is full');
  assert.deepEqual([held, outages.list()], [[], []]);
});

test('nothing waits for a folder that has not answered yet, nor is begun, until it does', async (t) => {
  const { outages, answer } = watched(t, [['output_folder', 2_000]]);
  t.mock.timers.tick(1_000);
  assert.deepEqual(outages.bounds([]).withoutDependencies, []);
  t.mock.timers.tick(1_000);
  assert.deepEqual(outages.bounds([]).withoutDependencies, ['output_folder']);
  assert.deepEqual([outages.holdsUp(['output_folder']), outages.holdsUp(['scratch_folder'])], [true, false]);
  assert.deepEqual(outages.list(), []);
  await answer('output_folder', null);
  assert.deepEqual(outages.bounds([]).withoutDependencies, []);
  assert.equal(outages.holdsUp(['output_folder']), false);
});

test('nothing waits for a signer that has not signed for a while, nor is begun, until it does', (t) => {
  const { outages, runs, held } = watched(t, [
    ['signer:slow', 2_000, 2_000],
    ['signer:news', 500, 500],
  ]);
  t.mock.timers.tick(1_000);
  assert.deepEqual(outages.bounds([]).withoutDependencies, ['signer:slow']);
  assert.deepEqual([outages.holdsUp(['signer:slow']), outages.holdsUp(['signer:news'])], [true, false]);
  for (const run of runs) run.signatureMs = 0;
  t.mock.timers.tick(1_000);
  assert.deepEqual(outages.bounds([]).withoutDependencies, []);
  assert.deepEqual([held, outages.list()], [[], []]);
});
