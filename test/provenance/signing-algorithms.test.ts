import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SIGNING_ALGORITHMS } from '#provenance/identity/signer.ts';
import { assertValid } from '../formats/judges.ts';
import { signWav, testAuthor } from './sign-wav.ts';
import { signerContract } from './signer-contract.ts';
import { testIdentity } from './test-identity.ts';

describe('a signer with its key in memory', () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    const { signer } = testIdentity({ algorithm, intermediate: true });
    signerContract(algorithm, async () => signer);

    test(`${algorithm}: signs manifests that both official readers call valid`, async () => {
      const { bytes, manifest, measuredBytes } = await signWav(testAuthor({ signer }));
      await assertValid(bytes, 'audio/wav');
      assert(manifest.length <= measuredBytes && measuredBytes - manifest.length < 256);
    });
  }
});
