import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { RELEASE } from '#config/release.ts';
import { startService } from '../../scripts/running-service.ts';
import { HANG_MS } from '../support/jobs/test-jobs.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { blocksOf, ROOT } from './code-blocks.ts';

const PAGE = 'docs/production.md';
const blocks = blocksOf(PAGE);

/** Returns the only block of a page with this information; fails where there is none, or another. */
function onlyBlock(info: string, heading: string): string {
  const [block, ...others] = blocks.filter((one) => one.info === info && one.heading === heading);
  assert(block !== undefined && others.length === 0);
  return block.text;
}

/** The values of a directive of the unit. */
function unitValues(directive: string): string[] {
  const unit = readFileSync(join(ROOT, 'deploy/attestream.service'), 'utf8');
  return [...unit.matchAll(new RegExp(`^${directive}=(.*)$`, 'gm'))].map(([, value = '']) => value);
}

/** Parts of a clone that a release has. */
const CLONED = [
  'src',
  'console',
  'config',
  'deploy',
  'docs',
  'samples',
  'scripts',
  'package.json',
  'package-lock.json',
];

/**
 * Takes the place of the network and of systemd, which are not there: a clone of this checkout, its packages, and the unit's
 * service under the user and with the variables of the unit. The checkout is at /mnt, its packages are at /media.
 */
const PRELUDE = `
set -euo pipefail
mount -t proc proc /proc
mkdir -p /etc/caddy /var/lib/nginx /var/log/nginx /var/tmp /var/cache /run/bin
rm -f /etc/nginx/sites-enabled/default
export PATH="/run/bin:$PATH" XDG_DATA_HOME=/var/tmp XDG_CONFIG_HOME=/var/tmp
getent group prometheus > /dev/null || groupadd --system prometheus
apt-get() { :; }
git() {
  if [ "$1" = clone ]; then mkdir -p "$3" && cd /mnt && cp -r ${CLONED.join(' ')} "$3"; fi
}
npm() {
  mkdir -p node_modules
  mountpoint -q node_modules || mount --bind /media node_modules
}
cat > /run/bin/systemd-run <<'END'
#!/bin/bash
while [[ $1 = -* ]]; do
  if [ "$1" = -p ]; then
    case $2 in
      User=*) user=\${2#*=} ;;
      WorkingDirectory=*) folder=\${2#*=} ;;
      Environment=*) variables+=(\${2#*=}) ;;
      StateDirectory=*) state=\${2#*=} ;;
    esac
    shift
  fi
  shift
done
install -d -o $user -g $user -m 0700 /var/lib/$state
cd $folder
exec setpriv --reuid $user --regid $user --init-groups env -i PATH="$PATH" "\${variables[@]}" "$@"
END
chmod 755 /run/bin/systemd-run
systemctl() {
  case "$*" in
    daemon-reload | 'restart prometheus') ;;
    'enable --now attestream' | 'start attestream')
      install -d -o attestream -g attestream -m 0700 /var/lib/attestream
      install -d -o attestream -g attestream /var/cache/attestream
      cd ${unitValues('WorkingDirectory')}
      setpriv --reuid attestream --regid attestream --init-groups --no-new-privs \
        env -i PATH="$PATH" ${unitValues('Environment').join(' ')} ${unitValues('ExecStart')} >> /var/log/attestream.log 2>&1 &
      service=$! ;;
    'stop attestream') kill $service && wait $service || [ $? = 143 ] ;;
    'reload nginx') nginx ;;
    'reload caddy')
      sed 's|^attestream.example.com {|&\\n tls /etc/ssl/attestream/fullchain.pem /etc/ssl/attestream/key.pem|' \
        /etc/caddy/Caddyfile > /run/Caddyfile
      caddy start --config /run/Caddyfile --adapter caddyfile 2>> /var/log/attestream.log ;;
    *) echo "no substitute for: systemctl $*" >&2; false ;;
  esac
}
`;

const FILM = onlyBlock('sh recipe', 'The first signed film');

/** Run before the recipes of a heading. */
const BEFORE: Readonly<Record<string, string>> = {
  Caddy: 'nginx -s quit; while [ -e /run/nginx.pid ]; do sleep 0.1; done\n',
  Prometheus: `cat > /etc/prometheus/prometheus.yml <<'END'\n${onlyBlock('yaml', 'Prometheus')}END\n`,
};

/** Run after them. */
const AFTER: Readonly<Record<string, string>> = {
  Start: `
stat -c '%U %a' /var/lib/attestream /etc/attestream/signing/key.pem
if command -v systemd-analyze; then systemd-analyze verify /etc/systemd/system/attestream.service; fi
`,
  nginx: FILM,
};

const MARK = '@@ ';

/**
 * Runs all recipes of the page, in namespaces with a network, processes and folders of their own. Returns what those of each
 * heading printed.
 */
function runRecipes(): ReadonlyMap<string, string> {
  assert.equal(process.getuid?.(), 0, 'The recipes make users and start servers: run this test as root.');
  const folder = temporaryFolder();
  execFileSync('cp', ['-a', '/etc', folder]);
  const recipes = blocks.filter(({ info }) => info === 'sh recipe');
  const steps = recipes.map(
    ({ heading, text }) => `echo '${MARK}${heading}'\n${BEFORE[heading] ?? ''}${text}${AFTER[heading] ?? ''}`,
  );
  const own = ['/opt', '/srv', '/var', '/run'].flatMap((path) => ['--tmpfs', path]);
  const packages = realpathSync(join(ROOT, 'node_modules'));
  const { status, stdout, stderr } = spawnSync(
    'bwrap',
    [
      ...[
        '--dev-bind',
        '/',
        '/',
        '--bind',
        ROOT,
        '/mnt',
        '--bind',
        packages,
        '/media',
        '--bind',
        join(folder, 'etc'),
        '/etc',
      ],
      ...[...own, '--unshare-net', '--unshare-pid', '--die-with-parent', '--cap-add', 'ALL', 'bash', '-c'],
      `${PRELUDE}trap 'cat /var/log/attestream.log >&2' EXIT\n${steps.join('\n')}`,
    ],
    { encoding: 'utf8', timeout: HANG_MS, env: { PATH: `${process.env['PATH']}:/usr/sbin:/sbin`, HOME: folder } },
  );
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  const printed = stdout.split(new RegExp(`^${MARK}`, 'm')).slice(1);
  return new Map(printed.map((text) => [text.split('\n', 1)[0] ?? '', text]));
}

describe('the recipes of docs/production.md', () => {
  test('lead to a film that is signed through both proxies and trusted, to metrics, and to a restored job', () => {
    const printed = runRecipes();
    for (const proxy of ['nginx', 'The first signed film']) assert.match(printed.get(proxy) ?? '', /"trusted"/, proxy);
    assert.match(printed.get('Start') ?? '', /"ready": true/);
    assert.match(printed.get('Start') ?? '', /attestream 700\nroot 640/);
    assert.match(printed.get('Checks before the start') ?? '', /^ok +identity default:/m);
    assert.match(printed.get('Prometheus') ?? '', /^attestream_build_info/m);
    assert.match(printed.get('Upgrade, and the way back') ?? '', new RegExp(`^${RELEASE.version}$`, 'm'));
    // Two films were signed and verified before the copy.
    assert.match(printed.get('Backup and restore') ?? '', /(succeeded\n){4}/);
  });
});

test('the role of PostgreSQL that docs/production.md makes is enough for a service, and may no more than own its database', async (t) => {
  const server = await startPostgres(t);
  const admin = await server.createDatabase();
  for (const statement of onlyBlock('sql recipe', 'PostgreSQL').trim().split('\n'))
    await server.query(admin, statement);
  const url = `postgres://attestream:REPLACE-ME@${server.address.host}:${server.address.port}/attestream`;
  const folder = temporaryFolder();
  const { certificatePath, privateKeyPath } = writeIdentity(folder, await testIdentity());
  const settings = {
    SERVICE__JOBS__DATABASE_URL: url,
    SERVICE__SIGNING__CERTIFICATE_PATH: certificatePath,
    SERVICE__SIGNING__PRIVATE_KEY_PATH: privateKeyPath,
  };
  await using service = await startService({ folder, settings });
  const path = join(ROOT, 'samples/four-notes.mp3');
  const jobs = Array.from({ length: 50 }, () =>
    service.runSync('/v2/sync/c2pa/audio', { inputs: [{ type: 'local_file_path', path }] }),
  );
  for (const { status } of await Promise.all(jobs)) assert.equal(status, 'succeeded');
  const [connections] = await server.query(
    admin,
    "select count(*)::int as count from pg_stat_activity where usename = 'attestream'",
  );
  assert.ok(Number(connections?.['count']) <= 11);
  await assert.rejects(server.query(url, 'create database another'), { code: '42501' });
});
