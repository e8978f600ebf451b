import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { JobResultResponse } from '#contract/job.ts';
import { readiness } from '#contract/service.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import { startService } from '../../scripts/running-service.ts';
import { HANG_MS, until } from '../support/jobs/test-jobs.ts';
import { readManifest } from '../support/manifests/read-manifest.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { type TestIdentity, testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { writeFiles } from '../support/publications/make-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
const [own, other] = await Promise.all([testIdentity(), testIdentity()]);

function rootOf({ chain }: TestIdentity): string {
  return pemOf(chain.at(-1) as Buffer);
}

/** Settings with a folder of lists, which environment variables cannot state. */
function settingsWith(folder: string, lists: string): Record<string, string> {
  const file = join(folder, 'service.toml');
  writeFileSync(file, `[trust]\nanchors = [${JSON.stringify(lists)}]\n`);
  return { SERVICE_CONFIG_PATH: file };
}

test('a service knows the list of its own signer, and its workers judge by lists that came later', async () => {
  const folder = temporaryFolder();
  const lists = writeFiles(join(folder, 'lists'), { 'own.pem': rootOf(own) });
  const paths = writeIdentity(folder, own);
  const identity = {
    SERVICE__SIGNING__CERTIFICATE_PATH: paths.certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: paths.privateKeyPath,
  };
  const source = join(folder, 'source.wav');
  writeFileSync(source, (await signWav(testAuthor({ signer: other.signer }))).bytes);
  const body = { inputs: [{ type: 'local_file_path', path: source }] };
  await using service = await startService({ folder, settings: { ...settingsWith(folder, lists), ...identity } });
  const logged = (message: string) =>
    readFileSync(service.logPath, 'utf8')
      .split('\n')
      .find((line) => line.includes(message));
  const codes = async ({ results: [result] }: JobResultResponse): Promise<string[]> => {
    const { ingredients } = await readManifest(readFileSync(result?.output_path as string));
    const { success = [], failure = [] } = ingredients[0]?.validation_results?.activeManifest ?? {};
    return [...success, ...failure].map(({ code }) => code).filter((code) => code.startsWith('signingCredential.'));
  };
  const verified = async () => (await service.runSync('/v2/sync/verify', body)).results[0]?.verification?.state;

  assert.equal(JSON.parse(logged('signing identity loaded') ?? '{}').trust_list, 'own');
  const reply = await fetch(`${service.base}/v2/health/ready`);
  assert.equal(readiness.parse(await reply.json()).identity?.kind, 'configured');
  assert.deepEqual(await codes(await service.runSync('/v2/sync/c2pa/audio', body)), ['signingCredential.untrusted']);
  assert.equal(await verified(), 'valid');

  writeFiles(lists, { 'other.pem': rootOf(other) });
  await until(() => logged('trust lists reloaded') !== undefined);
  assert((await codes(await service.runSync('/v2/sync/c2pa/audio', body))).includes('signingCredential.trusted'));
  assert.equal(await verified(), 'trusted');
});

test('a service does not start with a list that holds no certificate', async () => {
  const folder = temporaryFolder();
  const lists = writeFiles(join(folder, 'lists'), { 'empty.pem': 'nothing' });
  const env = { ...process.env, SERVICE__SERVER__BIND_ADDR: '127.0.0.1:0', ...settingsWith(folder, lists) };
  const { status, stdout } = spawnSync(process.execPath, [MAIN], { cwd: folder, env, timeout: HANG_MS });
  assert.equal(status, 1);
  assert(String(stdout).includes('TRUST_LIST_UNUSABLE'));
});
