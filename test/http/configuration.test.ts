import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serve } from '../support/servers/serve.ts';

test('the configuration is shown to everybody where no tokens are set', async () => {
  await using server = await serve();
  const reply = await fetch(`${server.base}/v2/configuration`);
  const { settings } = (await reply.json()) as { settings: Record<string, unknown> };
  assert.deepEqual([reply.status, settings['jobs.role']], [200, 'all']);
});
