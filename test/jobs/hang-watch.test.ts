import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { AppError } from '#errors/app-error.ts';
import { HangWatch } from '#jobs/outages/hang-watch.ts';
import { Outages } from '#jobs/outages/outages.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';

test('inputs without progress are held up by what hangs, of which all is tried at once', async (t) => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const { promise: all, resolve: answer } = Promise.withResolvers<void>();
  const tried: string[] = [];
  const outages = new Outages({
    probes: {
      problemOf: async ({ kind }) => {
        tried.push(kind);
        if (tried.length === 3) answer();
        await all;
        return kind === 'scratch_folder' ? null : 'it hangs';
      },
      minPauseMs: () => 0,
    },
    log: NO_LOG,
    outageHours: 24,
    signers: () => null,
    changed: () => undefined,
  });
  const held: (string | undefined)[] = [];
  const { promise: end, resolve } = Promise.withResolvers<void>();
  const runOf = (needs: readonly string[], idleMs = 6_000) => ({
    ...{ lease: { needs }, idleMs, heldUpBy: null },
    holdUp({ reason }: AppError) {
      if (held.push(reason) === 2) resolve();
    },
  });
  const runs = [['scratch_folder', 'output_folder'], ['output_bucket:a'], ['scratch_folder']];
  const watch = new HangWatch(new Set([...runs.map((needs) => runOf(needs)), runOf(['input_folder:b'], 0)]), outages);
  t.mock.timers.tick(5_000);
  await end;
  assert.deepEqual(held, ['FOLDER_HANGS', 'S3_UNREACHABLE']);
  assert.deepEqual(tried.sort(), ['output_bucket', 'output_folder', 'scratch_folder']);
  watch.stop();
  outages.stop();
});
