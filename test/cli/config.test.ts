import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { nearestKey } from '#config/nearest-key.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { attestream, entriesOf } from './run-attestream.ts';

const cwd = temporaryFolder();

function fileOf(name: string, toml: string): string {
  const file = join(cwd, name);
  writeFileSync(file, toml);
  return file;
}

describe('attestream config', () => {
  test('shows each value with its origin, and masks secrets', async () => {
    const file = fileOf('shown.toml', '[server]\n# a comment\nbind_addr = "127.0.0.1:1"\n[auth]\ntokens = ["hush"]\n');
    const env = { SERVICE__SERVER__DOCS: 'false' };
    const { code, stdout } = await attestream(['config', 'show', '--config', file, '--json'], { cwd, env });
    const found = new Map(entriesOf(stdout).map((entry) => [entry['key'], entry]));
    assert.equal(code, 0);
    assert.deepEqual(found.get('server.bind_addr'), {
      key: 'server.bind_addr',
      value: '127.0.0.1:1',
      origin: `${file}:3`,
    });
    assert.deepEqual(found.get('server.docs'), { key: 'server.docs', value: false, origin: 'SERVICE__SERVER__DOCS' });
    assert.deepEqual(found.get('auth.tokens'), { key: 'auth.tokens', value: '***', origin: `${file}:5` });
    assert.equal(found.get('jobs.retention_hours')?.['origin'], 'default');
    assert.doesNotMatch(stdout, /hush/);
  });

  test('explains a key, and all of a section', async () => {
    const [key, section] = await Promise.all([
      attestream(['config', 'explain', 'jobs.retention_hours', '--json']),
      attestream(['config', 'explain', 'callbacks', '--json']),
    ]);
    const [entry] = entriesOf(key.stdout);
    assert.equal(entry?.['variable'], 'SERVICE__JOBS__RETENTION_HOURS');
    assert.equal(entry?.['bounds'], 'integer from 1 to 87840');
    assert.deepEqual(
      entriesOf(section.stdout).map((each) => each['key']),
      ['callbacks.secret'],
    );
  });

  test('explains the keys of an identity and of a caller, whatever their names', async () => {
    const [identity, caller] = await Promise.all([
      attestream(['config', 'explain', 'signing.identities.sport.signer', '--json']),
      attestream(['config', 'explain', 'auth.callers.sport', '--json']),
    ]);
    const keys = [identity, caller].map(({ stdout }) => entriesOf(stdout).map((each) => each['key']));
    assert.deepEqual(keys, [['signing.identities.news.signer'], ['auth.callers.newsroom.identities']]);
  });

  test('suggests the key that a typo stands for', async () => {
    const { code, stderr } = await attestream(['config', 'explain', 'signing.tsa_ulr']);
    assert.equal(code, 2);
    assert.match(stderr, /signing\.tsa_url/);
    assert.equal(nearestKey('signin'), 'signing');
    assert.equal(nearestKey('jobs.base_dir'), 'output_sinks.local.base_dir');
    assert.equal(nearestKey('something.else'), null);
    assert.equal(nearestKey('server.port'), null);
    assert.equal(nearestKey('server.prt'), null);
  });

  test('checks a file as the start does', async () => {
    const right = fileOf('right.toml', '[server]\ndocs = false\n');
    const wrong = fileOf('wrong.toml', '[server]\nbind_adr = "x"\ndocs = 1\n');
    const [good, bad, missing] = await Promise.all(
      [right, wrong, join(cwd, 'none.toml')].map((file) => attestream(['config', 'check', file])),
    );
    assert.equal(good?.code, 0);
    assert.equal(bad?.code, 2);
    assert.match(bad?.stderr ?? '', /server\.docs: must be true or false[\s\S]*server\.bind_adr: .*server\.bind_addr/);
    assert.equal(missing?.code, 2);
  });
});
