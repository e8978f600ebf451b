import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { SIGNING_ALGORITHMS } from '#provenance/signer.ts';
import { makeToken, SOFTHSM, TOKEN } from '../provenance/signers/softhsm.ts';
import { testKey } from '../support/manifests/test-identity.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { attestream } from './run-attestream.ts';

const SUBJECT = ['--organization', 'Attestream tests', '--common-name', 'Newsroom'];

const token = makeToken(Object.fromEntries(SIGNING_ALGORITHMS.map((algorithm) => [algorithm, testKey(algorithm)])));

/** Writes a configuration with an identity for each key. No certificate is there yet. */
function writeConfiguration(): { readonly cwd: string; readonly files: readonly string[] } {
  const cwd = temporaryFolder();
  const identities = SIGNING_ALGORITHMS.map(
    (algorithm) => `
[signing.identities.${algorithm}]
certificate_path = "${join(cwd, 'none.pem')}"
algorithm = "${algorithm}"
signer = { type = "pkcs11", module = "${SOFTHSM}", token = "${TOKEN}", key = "${algorithm}", pin_path = "${token.pinPath}" }`,
  );
  const config = join(cwd, 'service.toml');
  writeFileSync(config, `[signing]\ndefault_identity = "es256"\n${identities.join('\n')}\n`);
  return { cwd, files: ['--config', config, '--csr', join(cwd, 'request.pem')] };
}

describe('attestream identity csr --identity', () => {
  for (const algorithm of SIGNING_ALGORITHMS) {
    test(`has the device sign a request for ${algorithm}, and makes no key`, async () => {
      const { cwd, files } = writeConfiguration();
      const { code, stderr } = await attestream(['identity', 'csr', ...SUBJECT, ...files, '--identity', algorithm], {
        cwd,
      });
      assert.equal(code, 0, stderr);
      assert.equal(existsSync(join(cwd, 'key.pem')), false);
      const args = ['req', '-in', join(cwd, 'request.pem'), '-verify', '-noout', '-text'];
      const { stdout: shown, stderr: verdict } = spawnSync('openssl', args, { encoding: 'utf8' });
      assert.match(verdict, /verify OK/);
      assert.match(shown, /O = Attestream tests, CN = Newsroom/);
      assert.match(shown, /E-mail Protection, 1\.3\.6\.1\.4\.1\.62558\.2\.1\n/);
    });
  }

  test('names an identity that is not configured', async () => {
    const { cwd, files } = writeConfiguration();
    for (const name of ['sports', 'constructor']) {
      const { code, stderr } = await attestream(['identity', 'csr', ...SUBJECT, ...files, '--identity', name], { cwd });
      assert.equal(code, 2);
      assert.ok(stderr.includes(`[signing.identities.${name}]`), stderr);
    }
  });

  test('has the device of a publisher sign with --publisher, and refuses it where there is none', async () => {
    const { cwd, files } = writeConfiguration();
    const [, config = '', , csr = ''] = files;
    appendFileSync(
      config,
      `[signing.identities.es256.publisher]
certificate_path = "${join(cwd, 'publisher.pem')}"
signer = { type = "pkcs11", module = "${SOFTHSM}", token = "${TOKEN}", key = "es384", pin_path = "${token.pinPath}" }\n`,
    );
    const request = (...args: string[]) =>
      attestream(['identity', 'csr', ...SUBJECT, ...files, '--publisher', ...args], { cwd });
    assert.match((await request()).stderr, /--publisher needs --identity/);
    assert.match((await request('--identity', 'es384')).stderr, /\[signing\.identities\.es384\.publisher\]/);
    const { code, stderr } = await request('--identity', 'es256');
    assert.equal(code, 0, stderr);
    assert.match(stderr, /publisher\.pem/);
    const { stdout } = spawnSync('openssl', ['req', '-in', csr, '-noout', '-text'], { encoding: 'utf8' });
    assert.match(stdout, /NIST CURVE: P-384/);
    assert.match(stdout, /1\.3\.6\.1\.5\.5\.7\.3\.36\n/);
  });

  for (const option of [
    ['--key', 'key.pem'],
    ['--algorithm', 'es256'],
  ]) {
    test(`refuses ${option[0]}, which the device would ignore`, async () => {
      const { cwd, files } = writeConfiguration();
      const { code, stderr } = await attestream(
        ['identity', 'csr', ...SUBJECT, ...files, '--identity', 'es256', ...option],
        { cwd },
      );
      assert.equal(code, 2);
      assert.match(stderr, new RegExp(`${option[0]} cannot stand beside --identity`));
      assert.equal(existsSync(join(cwd, 'request.pem')), false);
    });
  }
});
