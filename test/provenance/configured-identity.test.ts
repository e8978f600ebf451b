import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import type { AppError } from '#errors/app-error.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { loadCredential, type PemCredential } from '#provenance/identity/load-signing-identity.ts';
import { type CertificateContents, KEY_USAGE } from '#provenance/identity/x509.ts';
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '#provenance/signer.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import {
  type TestIdentity,
  type TestIdentityWishes,
  testIdentity,
  testKey,
  writeIdentity,
} from '../support/manifests/test-identity.ts';
import { signerContract } from './signer-contract.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const folder = mkdtempSync(path.join(tmpdir(), 'identity-'));
after(() => rmSync(folder, { recursive: true, force: true }));

function newFolder(): string {
  return mkdtempSync(path.join(folder, 'case-'));
}

/** The settings of an identity in these files. */
function settingsOf(
  identity: Pick<TestIdentity, 'chain' | 'privateKey'>,
  { algorithm, passphrase }: { readonly algorithm?: SigningAlgorithm; readonly passphrase?: string } = {},
): PemCredential {
  const files = writeIdentity(newFolder(), identity, passphrase === undefined ? {} : { passphrase });
  return {
    certificatePath: files.certificatePath,
    ...(algorithm && { algorithm }),
    signer: {
      type: 'pem',
      private_key_path: files.privateKeyPath,
      ...(passphrase !== undefined && { private_key_passphrase: passphrase }),
    },
  };
}

function load(settings: PemCredential): ReturnType<typeof loadCredential> {
  return loadCredential(settings, path.join(folder, 'data'));
}

/** The same settings with another file in the place of one. */
function withFile(settings: PemCredential, key: 'certificate' | 'key', file: string): PemCredential {
  return key === 'certificate'
    ? { ...settings, certificatePath: file }
    : { ...settings, signer: { ...settings.signer, private_key_path: file } };
}

describe('a configured identity', () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    test(`signs with ${algorithm}, from an encrypted key`, async () => {
      const identity = await testIdentity({ algorithm });
      const { signer, kind } = await load(settingsOf(identity, { algorithm, passphrase: 'correct horse' }));
      assert.equal(kind, 'configured');
      assert.equal(signer.algorithm, algorithm);
      await assertValid((await signWav(testAuthor({ signer }))).bytes, 'audio/wav');
    });
  }

  test('takes the algorithm from the key where none is configured', async () => {
    for (const algorithm of ['es256', 'es384', 'es512', 'ps256', 'ed25519'] as const) {
      assert.equal((await load(settingsOf(await testIdentity({ algorithm })))).signer.algorithm, algorithm);
    }
  });

  test('takes a key that is restricted to PSS with one hash', async () => {
    const { privateKey } = generateKeyPairSync('rsa-pss', {
      modulusLength: 2048,
      hashAlgorithm: 'sha384',
      mgf1HashAlgorithm: 'sha384',
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    });
    const key = createPrivateKey(privateKey);
    const { signer } = await load(settingsOf(await testIdentity({ algorithm: 'ps384', key })));
    assert.equal(signer.algorithm, 'ps384');
    await assertValid((await signWav(testAuthor({ signer }))).bytes, 'audio/wav');
  });

  test('keeps the intermediates and leaves the root out', async () => {
    const identity = await testIdentity({ intermediate: true });
    const { signer, subject, notAfter } = await load(settingsOf(identity));
    assert.deepEqual(signer.certificateChain, identity.chain.slice(0, 2));
    assert(subject.includes('Attestream tests'));
    assert(new Date(notAfter) > new Date());
    await assertValid((await signWav(testAuthor({ signer }))).bytes, 'audio/wav');
  });

  test('ends with the certificate of its chain that ends first', async () => {
    const notAfter = new Date(Math.floor(Date.now() / 1000) * 1000 + 60 * 60 * 1000);
    const ofIntermediate = await load(settingsOf(await testIdentity({ intermediate: { notAfter } })));
    const ofLeaf = await load(settingsOf(await testIdentity({ intermediate: true, leaf: { notAfter } })));
    const expected = notAfter.toISOString();
    assert.deepEqual([ofIntermediate.notAfter, ofLeaf.notAfter], [expected, expected]);
  });

  test('is read past comments, with line ends of Windows', async () => {
    const { chain, privateKey } = await testIdentity();
    const settings = settingsOf({ chain, privateKey });
    const pem = `subject=x\r\n-----BEGIN CERTIFICATE-----\r\n${chain[0]?.toString('base64')}\r\n-----END CERTIFICATE-----\r\n`;
    writeFileSync(settings.certificatePath, pem);
    assert.equal((await load(settings)).signer.algorithm, 'es256');
  });

  signerContract('a configured identity', async () => {
    const { signer } = await load(settingsOf(await testIdentity({ intermediate: true })));
    return signer;
  });
});

describe('the certificate profile', () => {
  const { any, serverAuth, codeSigning, timeStamping, emailProtection, ocspSigning } = EXTENDED_KEY_USAGE;
  const { digitalSignature, keyCertSign, keyEncipherment } = KEY_USAGE;
  const unfit: Readonly<Record<string, TestIdentityWishes>> = {
    'a leaf without an extended key usage': { leaf: { extendedKeyUsages: [] } },
    'a leaf for any usage': { leaf: { extendedKeyUsages: [any, emailProtection] } },
    'a leaf for servers': { leaf: { extendedKeyUsages: [serverAuth] } },
    'a leaf for code': { leaf: { extendedKeyUsages: [codeSigning] } },
    'a leaf for time-stamps too': { leaf: { extendedKeyUsages: [emailProtection, timeStamping] } },
    'a leaf for OCSP too': { leaf: { extendedKeyUsages: [emailProtection, ocspSigning] } },
    'a leaf without a signing usage': { leaf: { keyUsage: keyEncipherment } },
    'a leaf that may issue certificates': { leaf: { keyUsage: digitalSignature | keyCertSign } },
    'an authority as leaf': { leaf: { isCa: true } },
    'a self-signed leaf': { selfSigned: true },
    'a leaf without an authority key identifier': { leaf: { authorityKeyIdentifier: false } },
    'an RSA key of 1024 bits': {
      algorithm: 'ps256',
      key: generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey,
    },
    'a leaf of tomorrow': {
      leaf: { notBefore: new Date(Date.now() + DAY_MS), notAfter: new Date(Date.now() + 2 * DAY_MS) },
    },
  };
  for (const [what, wishes] of Object.entries(unfit)) {
    test(`refuses ${what}`, async () => {
      await assert.rejects(load(settingsOf(await testIdentity(wishes))), { reason: 'IDENTITY_INVALID' });
    });
  }

  test('refuses a leaf without an organisation, or without a key usage', async () => {
    for (const omitted of ['organization', 'keyUsage'] as const) {
      const leaf = { [omitted]: undefined };
      await assert.rejects(load(settingsOf(await testIdentity({ leaf }))), { reason: 'IDENTITY_INVALID' });
    }
  });

  test('refuses a key that belongs to another certificate', async () => {
    const { chain } = await testIdentity();
    await assert.rejects(load(settingsOf({ chain, privateKey: testKey('es256') })), { reason: 'IDENTITY_INVALID' });
  });

  test('refuses a chain in the wrong order, and one with a stranger in it', async () => {
    const { chain, privateKey } = await testIdentity({ intermediate: true });
    const strangers = (await testIdentity()).chain;
    for (const wrong of [[...chain].reverse(), [chain[0], chain[2], chain[1]], [chain[0], strangers[1]]]) {
      const identity = { chain: wrong as Buffer[], privateKey };
      await assert.rejects(load(settingsOf(identity)), { reason: 'IDENTITY_INVALID' });
    }
  });

  test('refuses an algorithm that the key is not made for', async () => {
    await assert.rejects(load(settingsOf(await testIdentity(), { algorithm: 'es384' })), {
      reason: 'IDENTITY_INVALID',
    });
  });

  test('refuses a kind of key that C2PA has no algorithm for', async () => {
    const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
    const { chain } = await testIdentity();
    await assert.rejects(load(settingsOf({ chain, privateKey: key })), { reason: 'IDENTITY_INVALID' });
  });
});

describe('a certificate that readers with the trust list of C2PA refuse', () => {
  const { emailProtection, c2paClaimSigning } = EXTENDED_KEY_USAGE;
  const fit = { extendedKeyUsages: [c2paClaimSigning, emailProtection], ocsp: 'http://ocsp.example.com' };
  const deviationsOf = async (leaf: Partial<CertificateContents>): Promise<string[]> => {
    const { deviations } = await load(settingsOf(await testIdentity({ leaf })));
    return deviations.map(({ oid }) => oid);
  };
  const validFor = (days: number) => ({
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + (days - 1) * DAY_MS),
  });

  test('is none that follows the profile of its assurance level', async () => {
    assert.deepEqual(await deviationsOf({ ...fit, ...validFor(365) }), []);
    assert.deepEqual(await deviationsOf({ ...fit, ...validFor(89), assuranceLevel: 2 }), []);
  });

  test('is loaded, and named by what it lacks', async () => {
    const { ocsp, extendedKeyUsages } = fit;
    assert.deepEqual(await deviationsOf({ ocsp }), ['1.3.6.1.4.1.62558.2.1']);
    assert.deepEqual(await deviationsOf({ extendedKeyUsages }), ['1.3.6.1.5.5.7.48.1']);
  });

  test('is named where it is valid for longer than its assurance level allows', async () => {
    assert.deepEqual(await deviationsOf({ ...fit, ...validFor(400) }), ['1.3.6.1.4.1.62558.3.10']);
    const ofLevel2 = { ...fit, ...validFor(100), assuranceLevel: 2 } as const;
    assert.deepEqual(await deviationsOf(ofLevel2), ['1.3.6.1.4.1.62558.3.20']);
  });
});

describe('identity files', () => {
  test('that are missing, folders, or not to be read are named', async () => {
    const settings = settingsOf(await testIdentity());
    const missing = path.join(newFolder(), 'missing.pem');
    for (const key of ['certificate', 'key'] as const) {
      for (const file of [missing, folder]) {
        await assert.rejects(load(withFile(settings, key, file)), (error: AppError<'IDENTITY_FILE_UNREADABLE'>) => {
          assert.equal(error.reason, 'IDENTITY_FILE_UNREADABLE');
          assert.equal(error.details.file, file);
          return true;
        });
      }
    }
  });

  test('that hold no PEM, or damaged PEM, are named', async () => {
    const settings = settingsOf(await testIdentity());
    const texts = [
      '',
      'hello',
      ...['CERTIFICATE', 'PRIVATE KEY'].map((name) => `-----BEGIN ${name}-----\nAAAA\n-----END ${name}-----\n`),
    ];
    for (const [index, text] of texts.entries()) {
      const file = path.join(newFolder(), `${index}.pem`);
      writeFileSync(file, text);
      for (const key of ['certificate', 'key'] as const) {
        await assert.rejects(load(withFile(settings, key, file)), { reason: 'IDENTITY_INVALID' });
      }
    }
  });

  test('with an encrypted key need its passphrase, and nothing of it shows in the error', async () => {
    const settings = settingsOf(await testIdentity(), { passphrase: 'correct horse' });
    const withPassphrase = (given: object) =>
      load({ ...settings, signer: { type: 'pem', private_key_path: settings.signer.private_key_path, ...given } });
    await assert.rejects(withPassphrase({}), { reason: 'IDENTITY_INVALID' });
    await assert.rejects(withPassphrase({ private_key_passphrase: 'battery staple' }), (error: Error) => {
      assert(!error.message.includes('battery'));
      return 'reason' in error && error.reason === 'IDENTITY_INVALID';
    });
  });

  test('may be readable by the service only', async () => {
    const settings = settingsOf(await testIdentity());
    chmodSync(settings.signer.private_key_path, 0o400);
    assert.equal((await load(settings)).kind, 'configured');
  });
});
