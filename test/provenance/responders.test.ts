import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '#config/config.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { configWith, credentialIn, fitIdentity, startedSigners } from './identities.ts';

const extendedKeyUsages = [EXTENDED_KEY_USAGE.c2paClaimSigning, EXTENDED_KEY_USAGE.emailProtection];
const unnamed = await fitIdentity({ leaf: { extendedKeyUsages } });
const whole = await fitIdentity();

for (const [name, identity, told] of [
  ['names no responder', unnamed, /names no OCSP responder.*Have it issued with the address of a responder/],
  [
    'has its issuer in no file',
    { ...whole, chain: whole.chain.slice(0, 1) },
    /nor in trust\.anchors.*Append it to the identity's file/,
  ],
] as const) {
  test(`a certificate that ${name} stops a start that requires OCSP responses, and is warned of where they are stapled`, async (t) => {
    const folder = temporaryFolder();
    const { settings } = await credentialIn(folder, 'pem', identity);
    const config = configWith(folder, { news: settings });
    const withOcsp = (ocsp: 'staple' | 'require'): Config => ({ ...config, signing: { ...config.signing, ocsp } });
    await assert.rejects(startedSigners(t, withOcsp('require')), { reason: 'OCSP_IMPOSSIBLE', message: told });
    const { signers, log } = await startedSigners(t, withOcsp('staple'));
    assert.equal(signers.identities.length, 1);
    const warned = log.lines.find(({ message }) => message === 'there is no new OCSP response to staple');
    assert.match(JSON.stringify(warned?.fields), told);
  });
}

test('a certificate whose issuer is a root in the file of the identity is no obstacle', async (t) => {
  const folder = temporaryFolder();
  const { settings } = await credentialIn(folder, 'pem', whole);
  const config = configWith(folder, { news: settings });
  const { log } = await startedSigners(t, { ...config, signing: { ...config.signing, ocsp: 'require' } });
  const warned = log.lines.find(({ message }) => message === 'there is no new OCSP response to staple');
  assert.match(JSON.stringify(warned?.fields), /the responder ocsp\.example\.com/);
});
