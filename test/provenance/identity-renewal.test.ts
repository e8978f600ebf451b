import assert from 'node:assert/strict';
import { verify, X509Certificate } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { DEFAULT_IDENTITY } from '#config/identities.ts';
import { Launcher } from '#processes/launcher.ts';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import type { Signer } from '#provenance/signer.ts';
import { Signers } from '#provenance/signers.ts';
import { NO_TRUST_LISTS, TrustLists } from '#provenance/trust-lists.ts';
import { keptLog, until } from '../support/jobs/test-jobs.ts';
import { testIdentity, testKey, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { clientOf, configOf, connectedClient } from './connected-client.ts';

const DATA = Buffer.from('data to sign');

const REFUSAL = 'the changed files of the signing identity cannot be used; the old one stays in force';

/** An identity that follows C2PA's profile, so that the log has nothing to warn of. */
const fitIdentity = () => {
  const extendedKeyUsages = [EXTENDED_KEY_USAGE.c2paClaimSigning, EXTENDED_KEY_USAGE.emailProtection];
  return testIdentity({ leaf: { extendedKeyUsages, ocsp: 'http://ocsp.example.com' } });
};

async function started(t: TestContext, config: Config, lists = NO_TRUST_LISTS) {
  const log = keptLog();
  const trust = { current: lists };
  const signers = await Signers.start({ config, launcher: new Launcher(), log, trust, pollIntervalMs: 5 });
  t.after(() => signers.close());
  const warnings = () => log.lines.filter(({ level }) => level !== 'info');
  return { signers, log, warnings };
}

/** Waits until the identity in force is another one than before, or returns at once where it is already. */
async function renewal(signers: Signers, before: Signers['identities']): Promise<void> {
  await until(() => signers.identities !== before);
}

/** Tells whether a client signs with the key of the leaf of a chain. */
async function signsFor(client: Signer, [leaf]: readonly Buffer[]): Promise<boolean> {
  const key = new X509Certificate(leaf as Buffer).publicKey;
  return verify('sha256', DATA, { key, dsaEncoding: 'ieee-p1363' }, await client.sign(DATA));
}

describe('an identity whose files are replaced', () => {
  test('comes into force without a restart, and those that sign go on with the old one until they exit', async (t) => {
    const folder = temporaryFolder();
    const [first, second] = [await fitIdentity(), await fitIdentity()];
    const config = await configOf(folder);
    writeIdentity(folder, first);
    const { signers } = await started(t, config);
    const { identities } = signers;
    const { client, access, exit } = await connectedClient(t, signers);
    access.allow(DEFAULT_IDENTITY);
    const old = client.identityOf(DEFAULT_IDENTITY).signer;

    writeIdentity(folder, second);
    await renewal(signers, identities);
    const renewed = await clientOf(t, signers);
    assert(await signsFor(renewed, second.chain));
    assert(await signsFor(old, first.chain));
    exit();
    await assert.rejects(async () => {
      for (;;) await old.sign(DATA);
    }, /no input runs/);
    assert(await signsFor(renewed, second.chain));
  });

  test('is renewed also where the signer is killed meanwhile', async (t) => {
    const folder = temporaryFolder();
    const second = await fitIdentity();
    const { signers } = await started(t, await configOf(folder));
    const { identities } = signers;
    writeIdentity(folder, second);
    process.kill(signers.pidOf(0) ?? 0, 'SIGKILL');
    await renewal(signers, identities);
    assert(await signsFor(await clientOf(t, signers), second.chain));
  });

  test('is found behind links that are swapped, as those of Kubernetes', async (t) => {
    const folder = temporaryFolder();
    const swapTo = async (version: string): Promise<void> => {
      mkdirSync(join(folder, version));
      writeIdentity(join(folder, version), await fitIdentity());
      symlinkSync(version, join(folder, '..new'));
      renameSync(join(folder, '..new'), join(folder, '..data'));
    };
    await swapTo('..first');
    for (const name of ['chain.pem', 'key.pem']) symlinkSync(join('..data', name), join(folder, name));
    const config = await configOf(temporaryFolder());
    const signing = {
      ...config.signing,
      certificate_path: join(folder, 'chain.pem'),
      private_key_path: join(folder, 'key.pem'),
    };
    const { signers } = await started(t, { ...config, signing });
    const { identities } = signers;
    await swapTo('..second');
    await renewal(signers, identities);
    assert.deepEqual(readFileSync(join(folder, '..data/chain.pem')), readFileSync(join(folder, '..second/chain.pem')));
  });

  test('stays in force after changes that cannot be used, with a warning for each, and is replaced by the next pair', async (t) => {
    const folder = temporaryFolder();
    const first = await fitIdentity();
    const config = await configOf(folder);
    const { certificatePath, privateKeyPath } = writeIdentity(folder, first);
    const { signers, log } = await started(t, config);
    const { identities } = signers;
    const refusals = () => log.lines.filter(({ message }) => message === REFUSAL).length;
    const otherKey = testKey('es256').export({ type: 'pkcs8', format: 'pem' });
    const spoils = [
      () => writeFileSync(privateKeyPath, otherKey),
      () => truncateSync(certificatePath, 300),
      () => rmSync(privateKeyPath),
    ];
    for (const [index, spoil] of spoils.entries()) {
      spoil();
      await until(() => refusals() > index);
      assert.equal(refusals(), index + 1);
    }
    assert.equal(signers.identities, identities);
    assert(await signsFor(await clientOf(t, signers), first.chain));
    writeIdentity(folder, await fitIdentity());
    await renewal(signers, identities);
    assert.equal(refusals(), spoils.length);
  });
});

test('the log names at the start what readers refuse of a certificate, with identifier and remedy', async (t) => {
  const { warnings } = await started(t, await configOf(temporaryFolder()));
  const refused = warnings().filter(({ fields }) => 'oid' in fields);
  assert.deepEqual(
    refused.map(({ fields }) => [(fields as { oid?: string }).oid, 'remedy' in fields]),
    [
      ['1.3.6.1.4.1.62558.2.1', true],
      ['1.3.6.1.5.5.7.48.1', true],
    ],
  );
});

test('the log warns once, at the start, of outputs without a time-stamp, and of a root that is not among the anchors', async (t) => {
  const folder = temporaryFolder();
  const identity = await fitIdentity();
  const config = await configOf(folder);
  writeIdentity(folder, identity);
  const { signers, warnings } = await started(t, config);
  const { identities } = signers;
  writeIdentity(folder, await fitIdentity());
  await renewal(signers, identities);
  assert.deepEqual(
    warnings().map(({ fields }) => (fields as { key?: string }).key),
    ['signing.tsa_url', 'trust.anchors'],
  );

  writeIdentity(folder, identity);
  const stamped = { ...config, signing: { ...config.signing, tsa_url: ['https://timestamp.example.com'] } };
  const own = new TrustLists({
    ...NO_TRUST_LISTS.data,
    signers: [{ name: 'own', pem: identity.chain.map(pemOf).join('') }],
  });
  assert.deepEqual((await started(t, stamped, own)).warnings(), []);
});
