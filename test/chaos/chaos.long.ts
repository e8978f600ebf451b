import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runChaos } from './run-chaos.ts';

describe('A service that is killed at any moment', () => {
  for (const [engine, rounds] of [
    ['embedded', 4],
    ['postgres', 2],
  ] as const) {
    test(`loses no job, delivers nothing half, and leaves nothing behind (${engine})`, async () => {
      const counts = await runChaos({ rounds, seed: 20_261_121, engine, withS3: false });
      assert.match(`${counts}`, new RegExp(`^ +${rounds} {2}rounds$`, 'm'));
    });
  }
});
