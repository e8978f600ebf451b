import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { signerContract } from './signer-contract.ts';

const identities = await Promise.all(
  SIGNING_ALGORITHMS.map((algorithm) => testIdentity({ algorithm, intermediate: true })),
);

describe('a signer with its key in memory', () => {
  for (const { signer } of identities) {
    const { algorithm } = signer;
    signerContract(algorithm, async () => signer);

    test(`${algorithm}: signs manifests that both official readers call valid`, async () => {
      const { bytes, manifest, measuredBytes } = await signWav(testAuthor({ signer }));
      await assertValid(bytes, 'audio/wav');
      assert.equal(manifest.length, measuredBytes);
    });
  }
});
