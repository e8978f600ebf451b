import assert from 'node:assert/strict';
import { execFileSync, execSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { RELEASE } from '#config/release.ts';
import { smallWav } from '../support/manifests/sign-wav.ts';
import { assertSignsAndServes } from '../support/servers/sign-and-serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const folder = temporaryFolder();
const release = join(folder, 'release');
const home = join(folder, 'home');
const installed = join(home, 'node_modules/attestream');
const program = join(home, 'node_modules/.bin/attestream');

/** Settings that ask for a package that is not installed, and the package. */
const PEERS = [
  ['@aws-sdk/client-s3', { SERVICE__INPUT_RESOLVERS__S3__REGION: 'somewhere' }],
  ['@opentelemetry/sdk-trace', { SERVICE__TELEMETRY__OTLP_ENDPOINT: 'http://127.0.0.1:9' }],
  [
    'pg-boss',
    {
      SERVICE__JOBS__DATABASE_URL: 'postgres://user@127.0.0.1:9/jobs',
      SERVICE__SIGNING__CERTIFICATE_PATH: 'chain.pem',
      SERVICE__SIGNING__PRIVATE_KEY_PATH: 'key.pem',
    },
  ],
  ['pkcs11js', { SERVICE_CONFIG_PATH: 'pkcs11.toml' }],
  ['@aws-sdk/client-kms', { SERVICE_CONFIG_PATH: 'aws-kms.toml' }],
] as const;

const PKCS11 = '{ type = "pkcs11", module = "m.so", token = "t", key = "k", pin_path = "pin" }';

/** Configurations whose keys are in devices: that of an identity, and that of a publisher. */
const CONFIGURATIONS = {
  'pkcs11.toml': `[signing.identities.news]
certificate_path = "chain.pem"
signer = { type = "http", url = "https://127.0.0.1:9", key = "k", token_path = "t" }
publisher = { certificate_path = "publisher.pem", signer = ${PKCS11} }`,
  'aws-kms.toml': `[signing.identities.news]
certificate_path = "chain.pem"
signer = { type = "aws_kms", key_id = "k" }`,
};

/** Code that runs before the program, and makes another system of this one. */
const OTHER_SYSTEMS = {
  'an old Node': `Object.defineProperty(process, 'versions', { value: { node: '22.21.0' } })`,
  'a Mac': `Object.defineProperty(process, 'platform', { value: 'darwin' })`,
  'a processor of ARM': `Object.defineProperty(process, 'arch', { value: 'arm64' })`,
  'a system without glibc': 'process.report.getReport = () => ({ header: {} })',
};

describe('the published package', () => {
  before(() => {
    execFileSync(process.execPath, [join(ROOT, 'scripts/release.ts'), release]);
    mkdirSync(home);
    for (const [name, text] of Object.entries(CONFIGURATIONS)) writeFileSync(join(home, name), text);
    const tarball = `attestream-${RELEASE.version}.tgz`;
    copyFileSync(join(release, tarball), join(home, tarball));
    const [command = ''] = /^npm install .*\.tgz$/m.exec(page('docs/install.md')) ?? [];
    assert.ok(page('README.md').includes(`\`${command}\``), 'README has the same command');
    const unreachable = { npm_config_registry: 'http://127.0.0.1:9', npm_config_cache: join(folder, 'npm-cache') };
    execSync(command, { cwd: home, env: { ...process.env, ...unreachable } });
  });

  test('signs a file and serves the console, installed without a network by the documented command', async () => {
    const cache = join(folder, 'cache');
    await assertSignsAndServes([program, 'serve'], join(folder, 'data'), {
      NODE_COMPILE_CACHE: '',
      XDG_CACHE_HOME: cache,
    });
    assert.ok(existsSync(join(cache, 'attestream')), 'compiled code is kept in the folder of caches');
  });

  test('has the commands of its program, with their exit codes', () => {
    writeFileSync(join(home, 'tone.wav'), smallWav());
    const cases: [string[], number][] = [
      [['--version'], 0],
      [['sing', 'tone.wav'], 2],
      [['sign', 'missing.wav'], 1],
      [['sign', 'tone.wav'], 0],
      [['verify', 'tone_c2pa.wav'], 0],
      [['verify', 'tone.wav'], 3],
    ];
    const settings = { XDG_DATA_HOME: join(folder, 'identity') };
    for (const [words, expected] of cases) {
      const { status, stderr } = run([], settings, words);
      assert.equal(status, expected, `${words.join(' ')}: ${stderr}`);
    }
    assert.equal(run([], {}, ['--version']).stdout.trim(), RELEASE.version);
  });

  test('takes at most 200 MB, and the size that its documentation says', () => {
    const modules = join(home, 'node_modules');
    const files = readdirSync(modules, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const bytes = files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
    assert.ok(bytes <= 200e6, `${bytes} bytes`);
    const [, said] = /takes (\d+) MB/.exec(page('docs/install.md')) ?? [];
    assert.ok(Math.abs(bytes / 1e6 - Number(said)) < 5, `${bytes} bytes, and ${said} MB in docs/install.md`);
  });

  test('holds the packages that its bill of materials and its list of licences name, and no other', () => {
    const { components } = JSON.parse(readFileSync(join(release, `attestream-${RELEASE.version}.cdx.json`), 'utf8'));
    const named = components.flatMap(({ name, version, properties }: Component) =>
      properties.map(({ value }) => `${value} ${value.startsWith('vendor/') ? '' : `${name}@${version}`}`),
    );
    assert.deepEqual(named.sort(), [...bundled(), ...copied()].sort());
    const licences = readFileSync(join(release, `attestream-${RELEASE.version}.licences.md`), 'utf8');
    for (const { name, version } of components) assert.ok(licences.includes(`| ${name} | ${version} |`), name);
  });

  for (const [peer, settings] of PEERS) {
    test(`names ${peer} where it is configured and not installed, with the command that installs it`, () => {
      const { status, stdout } = run([], { ...settings, NODE_COMPILE_CACHE: '', XDG_CACHE_HOME: '/dev/null' });
      assert.equal(status, 2, stdout);
      const { reason, msg } = JSON.parse(stdout.split('\n').find((line) => line.includes('"fatal"')) ?? '');
      assert.equal(reason, 'OPTIONAL_PACKAGES_MISSING');
      assert.match(msg, new RegExp(`npm install .*"${peer}@\\^\\d`));
      assert.ok(!existsSync(join(installed, 'node_modules/.cache')), 'nothing is written into the package');
    });
  }

  for (const [system, code] of Object.entries(OTHER_SYSTEMS)) {
    test(`says in one line that ${system} cannot run it`, () => {
      const path = join(folder, 'other-system.cjs');
      writeFileSync(path, code);
      const { status, stdout, stderr } = run(['--require', path], {});
      assert.deepEqual([status, stdout], [2, '']);
      assert.match(stderr, /^attestream: .* is needed, .*\.\n$/);
    });
  }
});

interface Component {
  readonly name: string;
  readonly version: string;
  readonly properties: readonly { readonly value: string }[];
}

function page(name: string): string {
  return readFileSync(join(ROOT, name), 'utf8');
}

function run(nodeArguments: readonly string[], env: Readonly<Record<string, string>>, words = ['serve']) {
  const options = { cwd: home, encoding: 'utf8', timeout: 600_000, env: { ...process.env, ...env } } as const;
  return spawnSync(process.execPath, [...nodeArguments, program, ...words], options);
}

/** Returns the packages that are installed inside the package: path, name and version. */
function bundled(): string[] {
  const files = readdirSync(installed, { recursive: true, encoding: 'utf8' });
  return files
    .filter((file) => /^(?:node_modules\/(?:@[^/]+\/)?[^/@]+\/)+package\.json$/.test(file))
    .map((file) => {
      const { name, version } = JSON.parse(readFileSync(join(installed, file), 'utf8'));
      return `${file.replace('/package.json', '')} ${name}@${version}`;
    });
}

function copied(): string[] {
  const entries = readdirSync(join(installed, 'vendor'), { withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => `vendor/${name} `);
}
