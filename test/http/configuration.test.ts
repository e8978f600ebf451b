import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pemOf } from '#provenance/identity/pem.ts';
import { defaultIdentity } from '../support/manifests/test-identity.ts';
import { serve } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('the configuration is shown to everybody where no tokens are set', async () => {
  await using server = await serve();
  const reply = await fetch(`${server.base}/v2/configuration`);
  const { settings } = (await reply.json()) as { settings: Record<string, unknown> };
  assert.deepEqual([reply.status, settings['jobs.role']], [200, 'all']);
});

test('the trust lists are shown to each caller who may use the API', async () => {
  const list = join(temporaryFolder(), 'newsroom.pem');
  const pem = pemOf(defaultIdentity.chain.at(-1) as Buffer);
  writeFileSync(list, pem);
  await using server = await serve({ SERVICE__TRUST__ANCHORS: list, SERVICE__AUTH__TOKENS: 'a-token' });
  const ask = (token: string) =>
    fetch(`${server.base}/v2/trust-lists`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual(await (await ask('a-token')).json(), {
    signers: [{ name: 'newsroom', pem }],
    authorities: [],
    publishers: [],
    allowed: [],
  });
  assert.equal((await ask('another')).status, 401);
});
