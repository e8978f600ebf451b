import assert from 'node:assert/strict';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { JobResultResponse } from '#contract/job.ts';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { startResponder } from '../provenance/ocsp-responder.ts';
import { startAuthority } from '../provenance/time-stamp-authority.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PATTERNS, SAMPLE } from './signed-folders.ts';

const SOUND = fileURLToPath(new URL('../../samples/four-notes.mp3', import.meta.url));
const INPUT = { type: 'local_file_path', path: SOUND };

const [responder, authority] = await Promise.all([startResponder(), startAuthority()]);
after(() => {
  responder.close();
  authority.close();
});
chmodSync(responder.privateKeyPath, 0o600);

async function started(t: TestContext, ocsp: string, folder = temporaryFolder()): Promise<RunningService> {
  const service = await startService({
    folder,
    settings: {
      SERVICE__SIGNING__CERTIFICATE_PATH: responder.certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: responder.privateKeyPath,
      SERVICE__SIGNING__TSA_URL: authority.url,
      SERVICE__SIGNING__OCSP: ocsp,
      SERVICE__TRUST__ANCHORS: responder.rootPath,
    },
  });
  t.after(() => service.stop());
  return service;
}

async function verdictOn(service: RunningService, input: object) {
  const { results } = await service.runSync('/v2/sync/verify', { inputs: [input] });
  const { verification } = results[0] ?? {};
  return [verification?.state, verification?.manifests[0]?.revocation?.status];
}

/** Waits until a job says what its inputs wait for. */
async function waitingFor(service: RunningService, jobId: string): Promise<string> {
  let job: JobResultResponse | undefined;
  await until(async () => {
    job = await service.lookUp(jobId);
    return job.waiting_for !== undefined || job.results.length > 0;
  });
  return JSON.stringify(job?.waiting_for ?? job?.results);
}

describe('a service that staples OCSP responses', () => {
  test('signs files and publications with them, and with time-stamps', async (t) => {
    responder.behave('good');
    const service = await started(t, 'staple');
    const sound = await service.runSync('/v2/sync/c2pa/audio', { inputs: [INPUT] });
    const path = sound.results[0]?.output_path ?? JSON.stringify(sound);
    await assertValid(readFileSync(path), 'audio/mpeg');
    assert.deepEqual(await verdictOn(service, { type: 'local_file_path', path }), ['trusted', 'good']);
    const input = { type: 'local_folder_path', path: SAMPLE };
    const folder = await service.runSync('/v2/sync/c2pa/fragmented', { inputs: [input], params: PATTERNS });
    const signed = folder.results[0]?.output_path ?? JSON.stringify(folder);
    assert.deepEqual(await verdictOn(service, { type: 'local_folder_path', path: signed }), ['trusted', 'good']);
  });

  test('keeps inputs waiting while the responder is away, where it requires them', async (t) => {
    responder.behave('refusing');
    const folder = temporaryFolder();
    const service = await started(t, 'require', folder);
    const jobId = await service.submit('/v2/c2pa/audio', { inputs: [INPUT] });
    assert.match(await waitingFor(service, jobId), /"dependency":"signer/);
    responder.behave('good');
    const { results } = await service.waitFor(jobId);
    const path = results[0]?.output_path ?? JSON.stringify(results);
    assert.deepEqual(await verdictOn(service, { type: 'local_file_path', path }), ['trusted', 'good']);
    assert.match(readFileSync(join(folder, 'service.log'), 'utf8'), /there is no new OCSP response to staple/);
  });

  test('signs without them while the responder is away, where it does not', async (t) => {
    responder.behave('refusing');
    const service = await started(t, 'staple');
    const { results } = await service.runSync('/v2/sync/c2pa/audio', { inputs: [INPUT] });
    const path = results[0]?.output_path ?? JSON.stringify(results);
    assert.deepEqual(await verdictOn(service, { type: 'local_file_path', path }), ['trusted', 'none']);
  });

  test('signs nothing with a certificate that is revoked', async (t) => {
    responder.behave('revoked');
    const service = await started(t, 'staple');
    const jobId = await service.submit('/v2/c2pa/audio', { inputs: [INPUT] });
    assert.match(await waitingFor(service, jobId), /"dependency":"signer.*was revoked on 2020-01-01/);
  });
});
