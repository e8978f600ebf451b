import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { Launcher } from '#processes/launcher.ts';
import { CheckedCredentials } from '#provenance/checked-credentials.ts';
import { Signers } from '#provenance/signers.ts';
import { NO_TRUST_LISTS } from '#provenance/trust-lists.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { configOf } from './connected-client.ts';

/** Starts signers, and tells whether the official readers judged what they sign. */
async function areJudged(t: TestContext, config: Config, folder: string): Promise<boolean> {
  const launcher = new Launcher();
  const launch = t.mock.method(launcher, 'launch');
  const checked = new CheckedCredentials(folder);
  const signers = await Signers.start({ config, launcher, log: NO_LOG, trust: { current: NO_TRUST_LISTS }, checked });
  signers.close();
  return launch.mock.calls.some(({ arguments: [entry] }) => entry.pathname.includes('run-identity-check'));
}

describe('credentials that were checked', () => {
  test('are not judged again, and others are', async (t) => {
    const folder = temporaryFolder();
    const checked = join(folder, 'checked');
    const config = await configOf(folder);
    assert.deepEqual([await areJudged(t, config, checked), await areJudged(t, config, checked)], [true, false]);
    writeIdentity(folder, await testIdentity());
    assert.equal(await areJudged(t, config, checked), true);
  });

  test('are judged each time where the folder cannot be written', async (t) => {
    const folder = temporaryFolder();
    const checked = join(folder, 'file');
    writeFileSync(checked, '');
    const config = await configOf(folder);
    assert.deepEqual([await areJudged(t, config, checked), await areJudged(t, config, checked)], [true, true]);
  });
});
