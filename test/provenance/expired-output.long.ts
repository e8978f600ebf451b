import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { checkOutput } from '#provenance/official-reader.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Signs with an identity that ends soon afterwards, on however slow a machine. Returns the output, and that end. */
async function signedBeforeItsEnd(): Promise<{ bytes: Buffer; notAfter: Date }> {
  for (let lifetimeMs = 2_000; ; lifetimeMs *= 2) {
    const notAfter = new Date(Date.now() + lifetimeMs);
    const { signer } = await testIdentity({ leaf: { notAfter } });
    try {
      return { ...(await signWav(testAuthor({ signer }))), notAfter };
    } catch (error) {
      if (!(error instanceof AppError && error.reason === 'IDENTITY_EXPIRED')) throw error;
    }
  }
}

test('an output whose certificate expires between signature and read-back is not blamed', async () => {
  const { bytes, notAfter } = await signedBeforeItsEnd();
  const path = join(temporaryFolder(), 'output.wav');
  writeFileSync(path, bytes);
  const readBack = () => checkOutput({ path, mediaType: 'audio/wav' }, new AbortController().signal);
  await until(() => Date.now() > notAfter.getTime() + 1_000);
  await assert.rejects(readBack(), { reason: 'IDENTITY_EXPIRED' });
});
