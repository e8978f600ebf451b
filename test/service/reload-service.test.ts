import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { JobResultResponse } from '#contract/job.ts';
import { startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('a running service signs with an identity, and protects its files, once it was reloaded, also by SIGHUP', async () => {
  const folder = temporaryFolder();
  const file = join(folder, 'service.toml');
  const section = (name: string, { certificatePath, privateKeyPath }: ReturnType<typeof writeIdentity>) =>
    `[signing.identities.${name}]
certificate_path = "${certificatePath}"
signer = { type = "pem", private_key_path = "${privateKeyPath}" }
`;
  const [news = '', sport = ''] = await Promise.all(
    ['news', 'sport'].map(async (name) => {
      mkdirSync(join(folder, name));
      return section(name, writeIdentity(join(folder, name), await testIdentity()));
    }),
  );
  const header = '[signing]\ndefault_identity = "news"\n';
  writeFileSync(file, header + news);
  await using service = await startService({
    folder: join(folder, 'service'),
    settings: { SERVICE_CONFIG_PATH: file },
    // A start is not ended by what would reload a service that is ready.
    onSpawn: (pid) =>
      void until(() => readFileSync(join(folder, 'service/service.log')).length > 0).then(() =>
        process.kill(pid, 'SIGHUP'),
      ),
  });
  const sign = (path: string, identity: string, route = '/v2/sync/c2pa/audio') =>
    fetch(`${service.base}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ inputs: [{ type: 'local_file_path', path }], params: { identity } }),
    });
  const sound = new URL('../../samples/four-notes.mp3', import.meta.url).pathname;
  // A worker is idle with the configuration of the start.
  assert.equal((await sign(sound, 'news')).status, 200);
  assert.equal((await sign(sound, 'sport')).status, 400);
  writeFileSync(file, header + news + sport);
  const reloaded = await fetch(`${service.base}/v2/reload`, { method: 'POST' });
  const { identities } = (await reloaded.json()) as { identities: { name: string }[] };
  assert.deepEqual(
    identities.map(({ name }) => name),
    ['news', 'sport'],
  );
  const signed = (await (await sign(sound, 'sport')).json()) as JobResultResponse;
  assert.deepEqual([signed.status, signed.identity], ['succeeded', 'sport']);
  const key = (await (await sign(join(folder, 'sport/key.pem'), 'sport')).json()) as JobResultResponse;
  assert.equal(key.results[0]?.error_details?.reason, 'SOURCE_PROTECTED');
  writeFileSync(file, header + news);
  process.kill(service.pid, 'SIGHUP');
  // A job that is accepted before waits for the identity, which is an outage then.
  await until(async () => (await sign(sound, 'sport', '/v2/c2pa/audio')).status === 400);
});
