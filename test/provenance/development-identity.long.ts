import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { createPublicKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { type CredentialSettings, developmentIdentityFile, identitiesOf } from '#config/identities.ts';
import { certificateProblems } from '#provenance/identity/certificate-profile.ts';
import { loadDevelopmentIdentity } from '#provenance/identity/development-identity.ts';
import { loadCredential } from '#provenance/identity/load-signing-identity.ts';
import { pemBlocks } from '#provenance/identity/pem.ts';
import type { SigningIdentity } from '#provenance/signing-identity.ts';
import { assertValid } from '../support/judges/file-judges.ts';
import { signWav, testAuthor } from '../support/manifests/sign-wav.ts';
import { signerContract } from './signer-contract.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const folder = mkdtempSync(path.join(tmpdir(), 'development-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const newFile = (): string => developmentIdentityFile(path.join(mkdtempSync(path.join(folder, 'case-')), 'data'));
const leafOf = ({ signer }: SigningIdentity): X509Certificate =>
  new X509Certificate(signer.certificateChain[0] as Buffer);
const modeOf = (file: string): number => statSync(file).mode & 0o777;

describe('the development identity', () => {
  signerContract('development identity', async () => (await loadDevelopmentIdentity(newFile())).signer);

  test('is what the service signs with where none is configured', async () => {
    const [identity] = identitiesOf(configSchema.parse({ jobs: { data_dir: path.dirname(newFile()) } }) as Config);
    const { signer, kind } = await loadCredential(identity as CredentialSettings, '');
    assert.equal(kind, 'development');
    await assertValid((await signWav(testAuthor({ signer }))).bytes, 'audio/wav');
  });

  test('is made once, for the user of the service only, and leaves nothing beside it', async () => {
    const ownFile = newFile();
    const first = await loadDevelopmentIdentity(ownFile);
    const second = await loadDevelopmentIdentity(ownFile);
    assert.deepEqual(second.signer.certificateChain, first.signer.certificateChain);
    assert.deepEqual(readdirSync(path.dirname(first.file)), [path.basename(first.file)]);
    assert.equal(modeOf(first.file), 0o600);
    assert.equal(modeOf(path.dirname(first.file)), 0o700);
  });

  test('satisfies the certificate profile, and lives at most 366 days', async () => {
    const { file } = await loadDevelopmentIdentity(newFile());
    const [leaf, authority, key] = pemBlocks(readFileSync(file, 'utf8')).map(({ pem }) => pem);
    const chain = [new X509Certificate(leaf as string), new X509Certificate(authority as string)] as const;
    assert.deepEqual(await certificateProblems(chain, createPublicKey(key as string), new Date()), []);
    assert(chain[0].validToDate.getTime() - chain[0].validFromDate.getTime() <= 366 * DAY_MS);
  });

  test('is renewed under the same authority long before it expires', async () => {
    const ownFile = newFile();
    const first = await loadDevelopmentIdentity(ownFile);
    const later = new Date(Date.now() + 300 * DAY_MS);
    const renewed = await loadDevelopmentIdentity(ownFile, later);
    assert.notDeepEqual(renewed.signer.certificateChain, first.signer.certificateChain);
    assert(Date.parse(renewed.notAfter) > later.getTime() + 300 * DAY_MS);
    assert.equal(leafOf(renewed).issuer, leafOf(first).issuer);
    const authority = new X509Certificate(pemBlocks(readFileSync(first.file, 'utf8'))[1]?.pem as string);
    assert(leafOf(renewed).verify(authority.publicKey) && leafOf(first).verify(authority.publicKey));
    const again = await loadDevelopmentIdentity(ownFile, later);
    assert.deepEqual(again.signer.certificateChain, renewed.signer.certificateChain);
    assert.equal(modeOf(renewed.file), 0o600);
  });

  test('gets a new authority where the old one would not outlive the leaf', async () => {
    const ownFile = newFile();
    await loadDevelopmentIdentity(ownFile);
    const later = new Date(Date.now() + 3600 * DAY_MS);
    const renewed = await loadDevelopmentIdentity(ownFile, later);
    const authority = new X509Certificate(pemBlocks(readFileSync(renewed.file, 'utf8'))[1]?.pem as string);
    assert(authority.validToDate > new Date(renewed.notAfter));
  });

  test('is the same for processes that start at once', async () => {
    const ownFile = newFile();
    const racer = fileURLToPath(new URL('./load-development-identity.ts', import.meta.url));
    const racers = Array.from({ length: 4 }, () => fork(racer, [ownFile]));
    const answers = await Promise.all(racers.map(async (child) => (await once(child, 'message'))[0] as string));
    assert.equal(new Set(answers).size, 1);
    const here = await Promise.all(Array.from({ length: 8 }, () => loadDevelopmentIdentity(ownFile)));
    assert.deepEqual(new Set(here.map(leafOf).map(({ fingerprint256 }) => fingerprint256)), new Set(answers));
  });

  test('that is damaged is named, and not overwritten', async () => {
    const ownFile = newFile();
    const { file } = await loadDevelopmentIdentity(ownFile);
    writeFileSync(file, 'damaged');
    await assert.rejects(loadDevelopmentIdentity(ownFile), { reason: 'IDENTITY_INVALID' });
    assert.equal(readFileSync(file, 'utf8'), 'damaged');
  });

  test('cannot be kept where the data folder is a file', async () => {
    const ownFile = path.join(folder, 'a-file');
    writeFileSync(ownFile, '');
    await assert.rejects(loadDevelopmentIdentity(developmentIdentityFile(ownFile)), {
      reason: 'IDENTITY_FOLDER_UNUSABLE',
    });
  });
});
