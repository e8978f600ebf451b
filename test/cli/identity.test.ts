import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { EXTENDED_KEY_USAGE } from '#provenance/identity/certificate-profile.ts';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import { makeSigningRequest } from '#provenance/signing-request.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { attestream, entriesOf } from './run-attestream.ts';

const SUBJECT = ['--organization', 'Attestream tests', '--common-name', 'Newsroom'];

/** Makes an identity that C2PA's policy has nothing against. */
function policyIdentity() {
  const { emailProtection, c2paClaimSigning } = EXTENDED_KEY_USAGE;
  const leaf = { extendedKeyUsages: [emailProtection, c2paClaimSigning], ocsp: 'http://ocsp.example.com' };
  return testIdentity({ leaf });
}

function modeOf(file: string): number {
  return statSync(file).mode & 0o777;
}

describe('attestream identity csr', () => {
  test('makes a request with both usages, and a key for its owner alone', async () => {
    const cwd = temporaryFolder();
    const { code } = await attestream(['identity', 'csr', ...SUBJECT], { cwd });
    assert.equal(code, 0);
    assert.equal(modeOf(join(cwd, 'key.pem')), 0o600);
    const args = ['req', '-in', join(cwd, 'request.pem'), '-verify', '-noout', '-text'];
    const shown = execFileSync('openssl', args, { encoding: 'utf8', stdio: 'pipe' });
    assert.match(shown, /O = Attestream tests, CN = Newsroom/);
    assert.match(shown, /Key Usage: critical\s+Digital Signature\n/);
    assert.match(shown, /E-mail Protection, 1\.3\.6\.1\.4\.1\.62558\.2\.1\n/);
  });

  test('signs requests of all algorithms as OpenSSL verifies them', async () => {
    const file = join(temporaryFolder(), 'request.pem');
    for (const algorithm of SIGNING_ALGORITHMS) {
      const { request } = await makeSigningRequest({ commonName: 'a', organization: 'b', algorithm });
      writeFileSync(file, request);
      const { stderr } = spawnSync('openssl', ['req', '-in', file, '-verify', '-noout'], { encoding: 'utf8' });
      assert.match(stderr, /verify OK/, algorithm);
    }
  });

  test('makes no request without a name', async () => {
    const folder = temporaryFolder();
    const { code } = await attestream(['identity', 'csr', '--organization', '', '--common-name', 'N'], { cwd: folder });
    assert.deepEqual([code, readdirSync(folder)], [2, []]);
  });

  test('overwrites no key, and leaves no request without one', async () => {
    const cwd = temporaryFolder();
    writeFileSync(join(cwd, 'key.pem'), 'the key of another certificate');
    const { code } = await attestream(['identity', 'csr', ...SUBJECT], { cwd });
    assert.equal(code, 2);
    assert.equal(readFileSync(join(cwd, 'key.pem'), 'utf8'), 'the key of another certificate');
    assert.equal(existsSync(join(cwd, 'request.pem')), false);
  });
});

describe('attestream identity check', () => {
  test('finds nothing in a pair that fits the profile', async () => {
    const cwd = temporaryFolder();
    const { certificatePath, privateKeyPath } = writeIdentity(cwd, await policyIdentity());
    chmodSync(privateKeyPath, 0o600);
    const files = ['--certificate', certificatePath, '--key', privateKeyPath];
    const { code, stdout } = await attestream(['identity', 'check', ...files, '--json'], { cwd });
    assert.equal(code, 0);
    assert.deepEqual(
      entriesOf(stdout).map(({ state, algorithm }) => ({ state, algorithm })),
      [{ state: 'ok', algorithm: 'es256' }],
    );
  });

  test('names problems and deviations at once, with usages by their identifiers', async () => {
    const cwd = temporaryFolder();
    const leaf = { extendedKeyUsages: [EXTENDED_KEY_USAGE.serverAuth], organization: undefined };
    const { certificatePath, privateKeyPath } = writeIdentity(cwd, await testIdentity({ leaf }));
    const files = ['--certificate', certificatePath, '--key', privateKeyPath];
    const { code, stdout } = await attestream(['identity', 'check', ...files, '--json'], { cwd });
    const entries = entriesOf(stdout);
    assert.equal(code, 2);
    assert.equal(entries.filter(({ state }) => state === 'failed').length, 3);
    assert.deepEqual(
      entries.filter(({ state }) => state === 'warning').map(({ oid }) => oid),
      [undefined, EXTENDED_KEY_USAGE.c2paClaimSigning, '1.3.6.1.5.5.7.48.1'],
    );
  });

  test('signs once with a pair, and installs none that readers refuse', async () => {
    const cwd = temporaryFolder();
    const { documentSigning, c2paClaimSigning } = EXTENDED_KEY_USAGE;
    const leaf = { extendedKeyUsages: [documentSigning, c2paClaimSigning], ocsp: 'http://ocsp.example.com' };
    const { certificatePath, privateKeyPath } = writeIdentity(cwd, await testIdentity({ leaf }));
    const files = ['--certificate', certificatePath, '--key', privateKeyPath];
    const env = {
      SERVICE__SIGNING__CERTIFICATE_PATH: join(cwd, 'installed.pem'),
      SERVICE__SIGNING__PRIVATE_KEY_PATH: join(cwd, 'installed.key'),
    };
    for (const command of ['check', 'install']) {
      const { code, stdout } = await attestream(['identity', command, ...files], { cwd, env });
      assert.equal(code, 2, stdout);
      assert.match(stdout, /failed {3}.*reader refuses what it signs/);
    }
    assert.equal(existsSync(join(cwd, 'installed.pem')), false);
  });

  test('asks for both files', async () => {
    const { code, stderr } = await attestream(['identity', 'check', '--key', 'key.pem'], { cwd: temporaryFolder() });
    assert.equal(code, 2);
    assert.match(stderr, /--certificate/);
  });
});

/** Two identities in folders of their own, and the variables that configure them. */
async function twoIdentities(cwd: string) {
  const made = await Promise.all(
    ['news', 'sport'].map(async (name) => {
      const folder = join(cwd, name);
      mkdirSync(folder);
      const files = writeIdentity(folder, await policyIdentity());
      chmodSync(files.privateKeyPath, 0o600);
      const prefix = `SERVICE__SIGNING__IDENTITIES__${name.toUpperCase()}__`;
      const env = {
        [`${prefix}CERTIFICATE_PATH`]: files.certificatePath,
        [`${prefix}SIGNER__TYPE`]: 'pem',
        [`${prefix}SIGNER__PRIVATE_KEY_PATH`]: files.privateKeyPath,
      };
      return { files, env };
    }),
  );
  const env = Object.assign({ SERVICE__SIGNING__DEFAULT_IDENTITY: 'news' }, ...made.map((each) => each.env));
  return { env, files: made.map((each) => each.files) };
}

describe('attestream identity, of several', () => {
  test('checks the one that is named, by a signature, and says which there are', async () => {
    const cwd = temporaryFolder();
    const { env, files } = await twoIdentities(cwd);
    writeFileSync(files[1]?.privateKeyPath ?? '', 'no key');
    const checked = (...name: string[]) => attestream(['identity', 'check', ...name, '--json'], { cwd, env });
    const [news, sport, radio] = await Promise.all([
      checked(),
      checked('--identity', 'sport'),
      checked('--identity', 'radio'),
    ]);
    assert.deepEqual([news.code, entriesOf(news.stdout).at(-1)?.['state']], [0, 'ok'], news.stderr);
    assert.equal(sport.code, 2);
    assert.match(sport.stdout, /it holds no private key in PEM/);
    assert.match(radio.stderr, /There is no identity radio. There are: news, sport/);
  });

  test('signs with the one that is named, as sign does', async () => {
    const cwd = temporaryFolder();
    const { env, files } = await twoIdentities(cwd);
    cpSync(new URL('../../samples/four-notes.mp3', import.meta.url), join(cwd, 'sound.mp3'));
    const home = { XDG_STATE_HOME: join(cwd, 'state'), XDG_DATA_HOME: join(cwd, 'data') };
    const sign = (...args: string[]) =>
      attestream(['sign', 'sound.mp3', '--force', ...args], { cwd, env: { ...env, ...home } });
    const leaves = files.map(({ certificatePath }) => new X509Certificate(readFileSync(certificatePath)).raw);
    for (const [args, signer] of [
      [['--identity', 'sport'], 1],
      [[], 0],
    ] as const) {
      const { code, stderr } = await sign(...args);
      assert.equal(code, 0, stderr);
      const signed = readFileSync(join(cwd, 'sound_c2pa.mp3'));
      assert.deepEqual(
        leaves.map((leaf) => signed.includes(leaf)),
        leaves.map((_, index) => index === signer),
      );
    }
    assert.match((await sign('--identity', 'radio')).stderr, /must be one of news, sport/);
  });

  test('installs a pair in the place of the one that is named', async () => {
    const cwd = temporaryFolder();
    const { env, files } = await twoIdentities(cwd);
    const [news, sport] = files.map(({ certificatePath }) => readFileSync(certificatePath, 'utf8'));
    const fresh = writeIdentity(cwd, await policyIdentity());
    const given = ['--certificate', fresh.certificatePath, '--key', fresh.privateKeyPath];
    const { code, stderr } = await attestream(['identity', 'install', '--identity', 'sport', ...given], { cwd, env });
    assert.equal(code, 0, stderr);
    const [newsAfter, sportAfter] = files.map(({ certificatePath }) => readFileSync(certificatePath, 'utf8'));
    assert.equal(newsAfter, news);
    assert.notEqual(sportAfter, sport);
    assert.equal(sportAfter, readFileSync(fresh.certificatePath, 'utf8'));
  });
});

describe('attestream identity install', () => {
  test('puts a checked pair in the place of the old one, with the permissions of that', async () => {
    const cwd = temporaryFolder();
    const [given, target] = [join(cwd, 'given'), join(cwd, 'target')];
    for (const folder of [given, target]) mkdirSync(folder);
    const fresh = writeIdentity(given, await policyIdentity());
    const old = writeIdentity(target, await policyIdentity());
    chmodSync(old.privateKeyPath, 0o640);
    const files = ['--certificate', fresh.certificatePath, '--key', fresh.privateKeyPath];
    const env = {
      SERVICE__SIGNING__CERTIFICATE_PATH: old.certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: old.privateKeyPath,
    };
    const { code, stderr } = await attestream(['identity', 'install', ...files], { cwd, env });
    assert.equal(code, 0, stderr);
    assert.equal(readFileSync(old.privateKeyPath, 'utf8'), readFileSync(fresh.privateKeyPath, 'utf8'));
    assert.equal(readFileSync(old.certificatePath, 'utf8'), readFileSync(fresh.certificatePath, 'utf8'));
    assert.equal(modeOf(old.privateKeyPath), 0o640);
    assert.deepEqual(readdirSync(target).sort(), ['chain.pem', 'key.pem']);
  });

  test('leaves the old pair where the new one cannot sign', async () => {
    const cwd = temporaryFolder();
    const target = join(cwd, 'target');
    mkdirSync(target);
    const old = writeIdentity(target, await policyIdentity());
    const before = readFileSync(old.certificatePath, 'utf8');
    const { chain } = await policyIdentity();
    const mismatched = writeIdentity(cwd, { ...(await policyIdentity()), chain });
    const files = ['--certificate', mismatched.certificatePath, '--key', mismatched.privateKeyPath];
    const env = {
      SERVICE__SIGNING__CERTIFICATE_PATH: old.certificatePath,
      SERVICE__SIGNING__PRIVATE_KEY_PATH: old.privateKeyPath,
    };
    const { code } = await attestream(['identity', 'install', ...files], { cwd, env });
    assert.equal(code, 2);
    assert.equal(readFileSync(old.certificatePath, 'utf8'), before);
  });
});
