import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { startAuthority } from '../provenance/time-stamp-authority.ts';
import { s3Settings } from '../service/s3-settings.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { openTestS3 } from '../support/servers/open-test-s3.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { attestream, entriesOf } from './run-attestream.ts';

/** An address where nothing listens. */
const NOBODY = 'http://127.0.0.1:1';

/** Runs preflight, and returns its exit code and the states by check, the worst of each. */
async function preflight(cwd: string, env: NodeJS.ProcessEnv) {
  const { code, stdout, stderr } = await attestream(['preflight', '--json'], { cwd, env });
  const worst = ['ok', 'warning', 'failed'];
  const states: Record<string, string> = {};
  const details: Record<string, string> = {};
  for (const { check, state, detail } of entriesOf(stdout) as { check: string; state: string; detail: string }[]) {
    if (worst.indexOf(state) < worst.indexOf(states[check] ?? 'ok')) continue;
    states[check] = state;
    details[check] = detail;
  }
  return { code, states, details, stderr };
}

describe('attestream preflight', () => {
  test('finds all that the service needs beside a running one, which it does not disturb', async (t) => {
    const [authority, s3] = await Promise.all([startAuthority(), openTestS3()]);
    t.after(async () => {
      authority.close();
      await s3.close();
    });
    const folder = temporaryFolder();
    const bucket = await s3.createBucket();
    const { certificatePath, privateKeyPath } = writeIdentity(folder, await testIdentity());
    chmodSync(privateKeyPath, 0o600);
    const settings = {
      ...s3Settings(s3, bucket),
      SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
      SERVICE__SIGNING__TSA_URL: authority.url,
      SERVICE__JOBS__DATA_DIR: join(folder, 'data'),
      SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: join(folder, 'output'),
      SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: folder,
    };
    await using service = await startService({ folder, settings });
    const { code, states, details, stderr } = await preflight(folder, settings);
    const { host } = new URL(authority.url);
    assert.equal(code, 0, stderr);
    for (const check of [
      'folder jobs.data_dir',
      'program packager',
      `authority ${host}`,
      'database',
      `input folder ${folder}`,
      `input bucket ${bucket}`,
      `output bucket ${bucket}`,
      `clock against ${host}`,
    ]) {
      assert.notEqual(states[check] ?? 'missing', 'failed', `${check}: ${details[check]}`);
    }
    // The leaf has neither C2PA's own usage nor a responder, which readers with C2PA's trust list refuse.
    assert.equal(states['identity default'], 'warning');
    assert.match(details['database'] ?? '', new RegExp(` ${service.pid} `));
    assert.equal((await fetch(`${service.base}/v2/health/ready`)).status, 200);
  });

  test('names everything that is wrong at once, with the remedies of the start', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'data'), 'a file');
    const { certificatePath, privateKeyPath } = writeIdentity(folder, await testIdentity({ selfSigned: true }));
    const { code, states, details } = await preflight(folder, {
      SERVICE__JOBS__DATA_DIR: join(folder, 'data'),
      SERVICE__JOBS__SCRATCH_DIR: join(folder, 'scratch'),
      SERVICE__OUTPUT_SINKS__LOCAL__BASE_DIR: join(folder, 'output'),
      SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
      SERVICE__TRUST__ANCHORS: join(folder, 'none.pem'),
      SERVICE__JOBS__DATABASE_URL: 'postgres://nobody@127.0.0.1:1/jobs',
      SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: join(folder, 'away'),
      SERVICE__OUTPUT_SINKS__S3__BUCKETS: 'no-such-bucket',
      SERVICE__OUTPUT_SINKS__S3__ENDPOINT_URL: NOBODY,
    });
    const failed = Object.keys(states).filter((check) => states[check] === 'failed');
    assert.equal(code, 2);
    assert.deepEqual(failed, [
      'folder jobs.data_dir',
      'trust lists',
      'identity',
      'database',
      `input folder ${join(folder, 'away')}`,
      'output bucket no-such-bucket',
    ]);
    assert.match(details['identity'] ?? '', /self-signed.*Have an authority issue it/);
  });

  test('names an authority that gives no time-stamp', async () => {
    const folder = temporaryFolder();
    const { code, states } = await preflight(folder, { SERVICE__SIGNING__TSA_URL: `${NOBODY}/tsa` });
    assert.equal(code, 2);
    assert.equal(states['authority 127.0.0.1:1'], 'failed');
  });
});
