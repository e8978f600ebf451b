import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import fc from 'fast-check';
import { KEY_USAGE, pemOf } from '#provenance/identity/certificate.ts';
import { readCertificateFields } from '#provenance/identity/certificate-fields.ts';
import { DER_TAG, derElement, derElements, derInteger, derOid, derTime } from '#provenance/identity/der.ts';
import { SIGNING_ALGORITHMS } from '#provenance/identity/signer.ts';
import { testIdentity } from './test-identity.ts';

describe('DER', () => {
  const cases: readonly [what: string, bytes: Buffer, hex: string][] = [
    ['the integer 0', derInteger(Buffer.of(0)), '020100'],
    ['the integer 127', derInteger(Buffer.of(0, 127)), '02017f'],
    ['the integer 128, with a sign', derInteger(Buffer.of(128)), '02020080'],
    ['a long identifier', derOid('1.2.840.10045.4.3.2'), '06082a8648ce3d040302'],
    ['a private enterprise number', derOid('1.3.6.1.4.1.62558.2.1'), '060a2b0601040183e85e0201'],
    [
      'a time of this century as UTCTime',
      derTime(new Date('2026-11-21T12:34:56.789Z')),
      '170d3236313132313132333435365a',
    ],
    ['a far time as GeneralizedTime', derTime(new Date('2050-01-01T00:00:00Z')), '180f32303530303130313030303030305a'],
    ['a short length', derElement(DER_TAG.octetString, Buffer.alloc(127)).subarray(0, 2), '047f'],
    ['a long length', derElement(DER_TAG.octetString, Buffer.alloc(256)).subarray(0, 4), '04820100'],
  ];
  for (const [what, bytes, hex] of cases) test(`writes ${what}`, () => assert.equal(bytes.toString('hex'), hex));

  test('reads back what it wrote', () => {
    const elements = fc.array(
      fc.record({ tag: fc.constantFrom(...Object.values(DER_TAG)), contents: fc.uint8Array({ maxLength: 300 }) }),
    );
    fc.assert(
      fc.property(elements, (written) => {
        const bytes = Buffer.concat(written.map(({ tag, contents }) => derElement(tag, contents)));
        assert.deepEqual(
          derElements(bytes),
          written.map(({ tag, contents }) => ({ tag, contents: Buffer.from(contents) })),
        );
      }),
    );
  });

  test('reads any bytes without going past them', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const contents = (derElements(Buffer.from(bytes)) ?? []).reduce(
          (total, element) => total + element.contents.length,
          0,
        );
        assert(contents <= bytes.length);
      }),
    );
  });
});

describe('a certificate', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'certificate-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  test('is one to OpenSSL, for keys of every algorithm', () => {
    for (const algorithm of SIGNING_ALGORITHMS) {
      const [leaf, intermediate, root] = testIdentity({ algorithm, intermediate: true }).chain.map((der, index) => {
        const file = path.join(folder, `${algorithm}-${index}.pem`);
        writeFileSync(file, pemOf(der));
        return file;
      });
      const files = ['-CAfile', root as string, '-untrusted', intermediate as string, leaf as string];
      execFileSync('openssl', ['verify', '-x509_strict', '-purpose', 'smimesign', ...files], { stdio: 'pipe' });
    }
  });

  test('says what it was made from', () => {
    const { chain, privateKey } = testIdentity({
      leaf: { keyUsage: KEY_USAGE.digitalSignature | KEY_USAGE.keyEncipherment },
    });
    const leaf = new X509Certificate(chain[0] as Buffer);
    assert.equal(leaf.subject, 'O=Attestream tests\nCN=Test signer');
    assert.deepEqual(
      leaf.publicKey.export({ type: 'spki', format: 'der' }),
      createPublicKey(privateKey).export({ type: 'spki', format: 'der' }),
    );
    const fields = { version: 3, keyUsage: 0xa0, hasAuthorityKeyIdentifier: true, isCa: false };
    assert.deepEqual(readCertificateFields(leaf.raw), fields);
  });

  test('is read without failing, however it is damaged', () => {
    const [leaf] = testIdentity().chain;
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
