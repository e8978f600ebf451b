import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { Jobs } from '#jobs/jobs.ts';
import { Launcher } from '#processes/launcher.ts';
import { Signers } from '#provenance/signers.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { configOf } from '../provenance/connected-client.ts';
import { ended, NO_LOG } from '../support/jobs/test-jobs.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const WORKER_ENTRY = new URL('../../src/worker.ts', import.meta.url);

/** Jobs as a command starts them, and the processes that were launched by then. */
function begun(t: TestContext, config: Config) {
  const launcher = new Launcher();
  const launch = t.mock.method(launcher, 'launch');
  const signer = new Signers({ config, launcher, log: NO_LOG, trust: { current: NO_TRUST_LISTS } });
  t.after(() => signer.close());
  const store = Jobs.openStore(config.jobs.data_dir, NO_LOG);
  const jobs = new Jobs({ config, launcher, signer, store, log: NO_LOG, workerEntry: WORKER_ENTRY });
  const workers = () => launch.mock.calls.filter(({ arguments: [entry] }) => entry.href === WORKER_ENTRY.href);
  return { jobs, signer, store, workers };
}

describe('a worker that is started before the signers are', () => {
  test('signs the first input', async (t) => {
    const folder = temporaryFolder();
    const { output_sinks: sinks, ...config } = await configOf(folder);
    const local = { ...sinks.local, base_dir: temporaryFolder() };
    const { jobs, signer, workers } = begun(t, { ...config, output_sinks: { ...sinks, local } });
    const starting = jobs.start();
    assert.equal(workers().length, 1);
    assert.deepEqual(signer.identities, []);
    await starting;
    t.after(() => jobs.stop(0));

    const path = join(temporaryFolder(), 'in.wav');
    writeFileSync(path, smallWav());
    const request = { inputs: [{ type: 'local_file_path' as const, path }], params: {} };
    const { job_id: jobId } = await jobs.submit({ operation: 'c2pa-audio', request, sync: false });
    const { results } = await ended(jobs, jobId);
    await assertValid(readFileSync(results[0]?.output_path ?? ''), 'audio/wav');
    assert.equal(workers().length, 1);
  });

  test('ends where the identity cannot be used, and the start fails', async (t) => {
    const folder = temporaryFolder();
    const config = await configOf(folder);
    rmSync(config.signing.private_key_path ?? '');
    const { jobs, store } = begun(t, config);
    await assert.rejects(jobs.start(), { reason: 'IDENTITY_FILE_UNREADABLE' });
    assert.equal(jobs.nodeState().workerProcesses, 0);
    await (await store).close();
  });
});
