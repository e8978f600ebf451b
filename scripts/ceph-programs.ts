// Ceph's S3 gateway, monitor and object store as programs of the tests, unpacked from Debian's packages into a folder
// that all checkouts of this user share. Nothing of the system is changed, and no root rights are needed.
// `node scripts/ceph-programs.ts` installs them, where they are not there yet.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

/** The release of Debian whose Ceph understands what the AWS SDK sends. It brings its own C library and Python. */
const DEBIAN_RELEASE = 'sid';
const PACKAGES = ['radosgw', 'ceph-mon', 'ceph-osd'];
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** Nothing of this is needed to run the programs. */
const NOT_UNPACKED = ['doc', 'man', 'locale', 'i18n'].map((folder) => `--exclude=./usr/share/${folder}`);

const ELSEWHERE =
  "The S3 server of the tests is Ceph, from Debian's packages for x86-64. On another system, start an S3 server and name it " +
  'in S3_TEST_ENDPOINT, S3_TEST_ACCESS_KEY_ID and S3_TEST_SECRET_ACCESS_KEY.';

/** The folder of the programs. Its name depends on the packages, so another list is installed anew. */
export const CEPH_ROOT = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  `attestream/ceph-${DEBIAN_RELEASE}-1`,
);

/** The folder of the libraries that the programs load. */
export const CEPH_LIBRARIES = join(CEPH_ROOT, 'usr/lib/x86_64-linux-gnu');

if (import.meta.main) {
  try {
    installCeph();
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 1;
  }
}

/** Installs the programs: some 20 seconds, 160 MB to load, 500 MB on the disk. */
function installCeph(): void {
  if (existsSync(CEPH_ROOT)) return;
  console.error('Installing the S3 server that the tests need: radosgw, ceph-mon, ceph-osd …');
  mkdirSync(dirname(CEPH_ROOT), { recursive: true });
  const work = mkdtempSync(`${CEPH_ROOT}.`);
  try {
    const root = join(work, 'root');
    unpack(download(work), root);
    moveInto(root, CEPH_ROOT);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Loads the packages and all that they depend on, with a state of apt of its own. Returns the folder they are in. */
function download(work: string): string {
  const lists = join(work, 'lists');
  const cache = join(work, 'cache');
  mkdirSync(join(lists, 'partial'), { recursive: true });
  mkdirSync(join(cache, 'archives/partial'), { recursive: true });
  writeFileSync(join(work, 'status'), '');
  writeFileSync(join(work, 'sources.list'), `deb [signed-by=${KEYRING}] ${mirror()} ${DEBIAN_RELEASE} main\n`);
  writeFileSync(
    join(work, 'apt.conf'),
    `Dir::Etc::sourcelist "${work}/sources.list"; Dir::Etc::sourceparts "-"; Dir::State::lists "${lists}";
Dir::Cache "${cache}"; Dir::State::status "${work}/status"; Dir::Log "${work}"; APT::Install-Recommends "false";
APT::Sandbox::User ""; Debug::NoLocking "1"; Acquire::Retries "3";\n`,
  );
  const env = { ...process.env, APT_CONFIG: join(work, 'apt.conf') };
  run('apt-get', ['-q', 'update'], env);
  run('apt-get', ['-q', '-y', '--download-only', 'install', ...PACKAGES], env);
  return join(cache, 'archives');
}

/** The mirror that this system gets its packages from. */
function mirror(): string {
  const sites = run('apt-get', ['indextargets', '--format', '$(SITE)']);
  const site = sites.split('\n').find((candidate) => /\/debian\/?$/.test(candidate));
  if (site !== undefined) return site;
  throw new Error(`apt knows no mirror of Debian. Name one in /etc/apt/sources.list.d.\n${ELSEWHERE}`);
}

/** `/bin`, `/lib` and the like are links into `/usr`, as on every Debian; archives of packages rely on it. */
function unpack(archives: string, root: string): void {
  for (const folder of ['bin', 'sbin', 'lib', 'lib64']) {
    mkdirSync(join(root, 'usr', folder), { recursive: true });
    symlinkSync(`usr/${folder}`, join(root, folder));
  }
  const tar = `tar -x -C "$1" --keep-directory-symlink --no-same-owner ${NOT_UNPACKED.join(' ')}`;
  for (const name of readdirSync(archives).filter((file) => file.endsWith('.deb'))) {
    run('bash', ['-c', `set -o pipefail; dpkg-deb --fsys-tarfile "$0" | ${tar}`, join(archives, name), root]);
  }
}

/** Another process may have installed the same meanwhile. */
function moveInto(root: string, place: string): void {
  try {
    renameSync(root, place);
  } catch (error) {
    if (!existsSync(place)) throw error;
  }
}

/** Runs a program to its end, and returns what it printed. */
function run(command: string, parameters: readonly string[], env = process.env): string {
  const { status, error, stdout, stderr } = spawnSync(command, parameters, { env, encoding: 'utf8' });
  if (status === 0) return stdout;
  if (error !== undefined)
    throw new Error(`The S3 server cannot be installed: ${command} does not start (${error.message}).\n${ELSEWHERE}`);
  throw new Error(`\`${command} ${parameters.join(' ')}\` failed. It printed:\n${stdout}${stderr}\n${ELSEWHERE}`);
}
