import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { pemOf } from '#provenance/identity/pem.ts';
import { KEY_USAGE, readCertificateFields } from '#provenance/identity/x509.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';

describe('a certificate', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'certificate-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('is one to OpenSSL, for keys of every algorithm', async () => {
    for (const algorithm of SIGNING_ALGORITHMS) {
      const [leaf, intermediate, root] = (await testIdentity({ algorithm, intermediate: true })).chain.map(
        (der, index) => {
          const file = path.join(folder, `${algorithm}-${index}.pem`);
          writeFileSync(file, pemOf(der));
          return file;
        },
      );
      const files = ['-CAfile', root as string, '-untrusted', intermediate as string, leaf as string];
      execFileSync('openssl', ['verify', '-x509_strict', '-purpose', 'smimesign', ...files], { stdio: 'pipe' });
    }
  });

  test('says what it was made from', async () => {
    const { chain, privateKey } = await testIdentity({
      leaf: { keyUsage: KEY_USAGE.digitalSignature | KEY_USAGE.keyEncipherment },
    });
    const leaf = new X509Certificate(chain[0] as Buffer);
    assert.equal(leaf.subject, 'O=Attestream tests\nCN=Test signer');
    assert.deepEqual(
      leaf.publicKey.export({ type: 'spki', format: 'der' }),
      createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    );
    const fields = {
      hasExtensions: true,
      keyUsage: KEY_USAGE.digitalSignature | KEY_USAGE.keyEncipherment,
      hasAuthorityKeyIdentifier: true,
      isCa: false,
      assuranceLevel: 1,
    };
    assert.deepEqual(readCertificateFields(leaf.raw), fields);
  });

  test('says when it is valid, before and after 2050, when the encoding of times changes', async () => {
    const validity = { notBefore: new Date('2026-11-21T12:34:56Z'), notAfter: new Date('2050-01-01T00:00:00Z') };
    const leaf = new X509Certificate((await testIdentity({ leaf: validity })).chain[0] as Buffer);
    assert.deepEqual({ notBefore: leaf.validFromDate, notAfter: leaf.validToDate }, validity);
  });

  test('is read without failing, however it is damaged', async () => {
    const [leaf] = (await testIdentity()).chain;
    assert(leaf !== undefined);
    fc.assert(
      fc.property(fc.nat(leaf.length - 1), fc.nat(255), (position, byte) => {
        const damaged = Buffer.from(leaf);
        damaged.writeUInt8(byte, position);
        readCertificateFields(damaged);
        readCertificateFields(damaged.subarray(0, position));
      }),
    );
  });
});
