import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { judgeManifest } from '#provenance/dry-run/dry-run-manifest.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { type TestIdentityWishes, testIdentity } from '../support/manifests/test-identity.ts';

const { signal } = new AbortController();

async function manifestBy(wishes: TestIdentityWishes): Promise<Uint8Array> {
  return (await signWav(testAuthor({ signer: (await testIdentity(wishes)).signer }))).manifest;
}

describe('both official readers judge a manifest without its asset', () => {
  test('and hold nothing against a sound one, whoever trusts its certificate', async () => {
    const { problems, report } = await judgeManifest(await manifestBy({}), signal);
    assert.deepEqual(problems, []);
    assert.ok(report?.active_manifest !== undefined);
  });

  test('and one is enough to find fault: only the WASM reader refuses a certificate for signing claims alone', async () => {
    const manifest = await manifestBy({ leaf: { extendedKeyUsages: [EXTENDED_KEY_USAGE.c2paClaimSigning] } });
    const { problems } = await judgeManifest(manifest, signal);
    assert.deepEqual(problems, [{ reader: 'wasm', problem: 'signingCredential.invalid' }]);
  });

  test('and find a signature that does not fit', async () => {
    const manifest = Buffer.from(await manifestBy({}));
    const at = manifest.indexOf('c2pa.opened');
    manifest.write('c2pa.0pened', at, 'latin1');
    const { problems } = await judgeManifest(manifest, signal);
    assert.deepEqual(new Set(problems.map(({ reader }) => reader)), new Set(['native', 'wasm']));
  });

  test('and what cannot be read is a problem, and no failure of theirs', async () => {
    for (const bytes of [Buffer.alloc(0), Buffer.from('not a manifest store'), Buffer.alloc(64)]) {
      const { problems, report } = await judgeManifest(bytes, signal);
      assert.equal(problems.length, 2);
      assert.equal(report, null);
    }
  });
});
