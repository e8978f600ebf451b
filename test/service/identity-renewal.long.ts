import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { answerFor, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

test('an input that runs when the identity is renewed is signed with the old one, and those after it with the new one', async (t) => {
  const [folder, keys] = [temporaryFolder(), temporaryFolder()];
  const [first, second] = [await testIdentity(), await testIdentity({ algorithm: 'es384' })];
  const { certificatePath, privateKeyPath } = writeIdentity(keys, first);
  const settings = {
    SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
  };
  const [asked, mayAnswer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const server = await serve(t, async (request, response) => {
    asked.resolve();
    await mayAnswer.promise;
    const { status, headers, part } = answerFor(request, { content: smallWav(), ranges: true });
    response.writeHead(status, headers).end(part);
  });
  await using service = await startService({ folder, settings });
  const loaded = () => readFileSync(service.logPath, 'utf8').split('signing identity loaded').length - 1;
  const inputs = [{ type: 'remote_file_url', url: `${server.base}/sound.wav` }];
  const submit = (name: string) => service.submit('/v2/c2pa/audio', { inputs, output: { type: 'local', name } });
  const outputOf = async (jobId: string): Promise<Buffer> => {
    const [result] = (await service.waitFor(jobId)).results;
    return readFileSync(result?.output_path ?? assert.fail(JSON.stringify(result)));
  };

  const running = await submit('running');
  await asked.promise;
  writeIdentity(keys, second);
  await until(() => loaded() === 2);
  const later = await submit('later');
  mayAnswer.resolve();
  for (const [jobId, { chain }] of [
    [running, first],
    [later, second],
  ] as const) {
    const output = await outputOf(jobId);
    await assertValid(output, 'audio/wav');
    assert(output.includes(chain[0] as Buffer), 'the signature holds the certificate of its key');
  }
});

test('a service with an expired identity verifies, refuses jobs that sign, and signs when it is renewed', async () => {
  const [folder, keys] = [temporaryFolder(), temporaryFolder()];
  const DAY_MS = 86_400_000;
  const ended = { notBefore: new Date(Date.now() - 2 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) };
  const { certificatePath, privateKeyPath } = writeIdentity(keys, await testIdentity({ leaf: ended }));
  const settings = {
    SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
  };
  const path = join(folder, 'sound.wav');
  writeFileSync(path, smallWav());
  const body = { inputs: [{ type: 'local_file_path', path }] };
  await using service = await startService({ folder, settings });
  assert.equal((await service.runSync('/v2/sync/verify', body)).status, 'succeeded');
  assert.equal((await fetch(`${service.base}/v2/health/ready`)).status, 503);
  const refused = await fetch(`${service.base}/v2/c2pa/audio`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  assert.equal(refused.status, 503);
  assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
  writeIdentity(keys, await testIdentity());
  await until(async () => (await fetch(`${service.base}/v2/health/ready`)).status === 200);
  assert.equal((await service.runSync('/v2/sync/c2pa/audio', body)).status, 'succeeded');
});
