// Sets up what is missing, so that the commands of CONTRIBUTING.md work in a fresh clone. Plain JavaScript: it runs on
// whatever Node the system has (20 or newer), before anything is installed. Run it alone with `npm run setup`;
// `--tests` also sets up the programs that the tests need; `--production` is content with what `npm ci --omit=dev` installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(fileURLToPath(import.meta.url), '../..');
const modules = join(root, 'node_modules');
const STAMP = '.attestream-setup';

/** Debian packages of the programs that make and judge the tests' media and play the part of other servers. */
const TEST_PROGRAMS = [
  { program: 'ffmpeg', debianPackage: 'ffmpeg' },
  { program: 'ffprobe', debianPackage: 'ffmpeg' },
  { program: 'flac', debianPackage: 'flac' },
  { program: 'lame', debianPackage: 'lame' },
  { program: 'sox', debianPackage: 'sox' },
  { program: 'openssl', debianPackage: 'openssl' },
  { program: 'jq', debianPackage: 'jq' },
  { program: 'chromium-headless-shell', debianPackage: 'chromium-headless-shell' },
  { program: 'nginx', debianPackage: 'nginx-light' },
  { program: 'apache2', debianPackage: 'apache2-bin' },
  { program: 'lighttpd', debianPackage: 'lighttpd' },
  { program: 'caddy', debianPackage: 'caddy' },
  { program: 'python3', debianPackage: 'python3' },
  { program: 'pgbouncer', debianPackage: 'pgbouncer' },
  { program: 'bwrap', debianPackage: 'bubblewrap' },
  { program: 'promtool', debianPackage: 'prometheus' },
  { program: 'softhsm2-util', debianPackage: 'softhsm2' },
  { program: 'g++', debianPackage: 'g++' },
  { program: 'make', debianPackage: 'make' },
];

/**
 * Installs Debian packages, with a policy in the way of those that would start a service of the system (invoke-rc.d(8)):
 * the tests start what they need themselves, each in a folder of its own.
 */
const INSTALL_PACKAGES = `
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  trap 'rm -f $policy' EXIT
  printf '#!/bin/sh\\nexit 101\\n' > $policy && chmod 755 $policy
fi
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
`;

installModules();
if (process.argv.includes('--tests')) {
  installTestPrograms();
  buildPkcs11();
  installS3Server();
}

/** Installs the npm dependencies, unless they already are those of package-lock.json. */
function installModules() {
  const wanted = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  const stamp = join(modules, STAMP);
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  // It belongs to another checkout.
  if (lstatSync(modules, { throwIfNoEntry: false })?.isSymbolicLink()) return;
  if (process.argv.includes('--production') && isProductionInstalled()) {
    // `npm ci --ignore-scripts` leaves the pinned Node out.
    if (!existsSync(join(modules, 'node/bin/node'))) npm(['rebuild', 'node', '--loglevel=error']);
    return;
  }
  say('Installing the npm dependencies (once, about half a minute) …');
  replaceModules(wanted);
}

/** Installs into a folder of its own, which then takes the place of node_modules: a failure leaves the old packages as they were. */
function replaceModules(wanted) {
  const folder = `${modules}.new`;
  const remove = () => rmSync(folder, { recursive: true, force: true });
  remove();
  process.on('exit', remove);
  mkdirSync(folder);
  for (const name of ['package.json', 'package-lock.json', '.npmrc'])
    copyFileSync(join(root, name), join(folder, name));
  // Scripts of packages do not run, but for the one that puts the pinned Node in place. The C2PA package holds the
  // addon for Linux x64 and would download it again.
  npm(['ci', '--ignore-scripts', '--no-fund', '--no-audit', '--loglevel=error'], folder);
  npm(['rebuild', 'node', '--loglevel=error'], folder);
  if (process.platform !== 'linux' || process.arch !== 'x64') npm(['rebuild', '@contentauth/c2pa-node'], folder);
  writeFileSync(join(folder, 'node_modules', STAMP), wanted);
  if (existsSync(modules)) renameSync(modules, join(folder, 'old'));
  renameSync(join(folder, 'node_modules'), modules);
}

/** Returns true where npm has installed what runs in production: every package that is neither for development nor optional. */
function isProductionInstalled() {
  const installed = join(modules, '.package-lock.json');
  if (!existsSync(installed)) return false;
  const [wanted, found] = [join(root, 'package-lock.json'), installed].map(
    (path) => JSON.parse(readFileSync(path)).packages,
  );
  return Object.entries(wanted).every(
    ([path, { version, dev, optional }]) => path === '' || dev || optional || found[path]?.version === version,
  );
}

function installTestPrograms() {
  const missing = TEST_PROGRAMS.filter(({ program }) => !isOnPath(program));
  if (missing.length === 0) return;
  const packages = [...new Set(missing.map(({ debianPackage }) => debianPackage))];
  const asRoot = rootPrefix();
  if (asRoot === null || !isOnPath('apt-get')) {
    fail(
      `The tests need ${missing.map(({ program }) => program).join(', ')}. Install them and run the command again; on Debian:\n` +
        `  sudo apt-get install --no-install-recommends ${packages.join(' ')}`,
    );
  }
  say(`Installing the programs that the tests need: ${packages.join(', ')} …`);
  run([...asRoot, 'apt-get', 'update', '-q']);
  run([...asRoot, 'sh', '-c', INSTALL_PACKAGES, 'sh', ...packages]);
}

/** Compiles the addon of pkcs11js, which only keys in tokens need. Headers of Node that are installed save a download. */
function buildPkcs11() {
  if (existsSync(join(modules, 'pkcs11js/build/Release/pkcs11.node'))) return;
  say('Building pkcs11js …');
  const prefix = dirname(dirname(realpathSync(systemNode())));
  const hasHeaders = existsSync(join(prefix, 'include/node/common.gypi'));
  npm(['rebuild', 'pkcs11js', '--loglevel=error', ...(hasHeaders ? [`--nodedir=${prefix}`] : [])]);
}

/** The S3 server of the tests, unless they are pointed at another one. The installer runs on the pinned Node. */
function installS3Server() {
  if (process.env.S3_TEST_ENDPOINT === undefined)
    run([join(modules, '.bin/node'), join(root, 'scripts/ceph-programs.ts')]);
}

/** Returns the words to put before a command so that it runs as root; null where that would need a password. */
function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  return spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0 ? ['sudo', '-n'] : null;
}

function isOnPath(program) {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin'];
  return folders.some((folder) => existsSync(join(folder, program)));
}

/** Runs npm on the system's Node: the npm of Debian finds its own modules on that of Debian only. */
function npm(parameters, cwd = root) {
  const cli = process.env.npm_execpath;
  const env = { ...process.env, PATH: systemFolders().join(delimiter) };
  if (cli?.endsWith('.js')) run([systemNode(), cli, ...parameters], { cwd, env });
  else run([process.platform === 'win32' ? 'npm.cmd' : 'npm', ...parameters], { cwd, env });
}

function systemNode() {
  const nodes = systemFolders().map((folder) => join(folder, 'node'));
  return nodes.find((path) => existsSync(path)) ?? process.execPath;
}

function systemFolders() {
  return (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.startsWith(modules));
}

function run([command, ...parameters], { cwd = root, env = process.env } = {}) {
  const { status, error } = spawnSync(command, parameters, { cwd, env, stdio: ['ignore', 2, 2] });
  if (status === 0) return;
  fail(
    `\`${[command, ...parameters].join(' ')}\` failed${error === undefined ? '' : `: ${error.message}`}.\n` +
      'What it printed stands above. If the network refused, run the command again when it is there: what was installed before is as it was.',
  );
}

function say(text) {
  process.stderr.write(`${text}\n`);
}

function fail(text) {
  say(`\n${text}`);
  process.exit(1);
}
