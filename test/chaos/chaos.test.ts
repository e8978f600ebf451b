import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { runChaos } from './run-chaos.ts';

describe('A service that is killed at any moment', () => {
  test('loses no job, delivers nothing half, and leaves nothing behind', async () => {
    const counts = await runChaos({ rounds: 6, seed: 20_261_121, engine: 'embedded', withS3: false });
    assert.match(`${counts}`, /^ +6 {2}rounds$/m);
  });
});
