import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { temporaryFolder } from '../support/temporary-folder.ts';

const WATCH = new URL('../support/hang-watch.ts', import.meta.url);
const OPEN = `import { test } from 'node:test';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
const open = () => new Promise((resolve) => createServer().listen(0, '127.0.0.1', resolve));
spawn('sleep', ['infinity'], { stdio: 'inherit' });
`;
const MESSAGE = /hangs\.ts: nothing has happened for [\d.]+ minutes\.\nRunning: (?<running>.+)\.\n/;

/** Runs a test file that hangs, and returns what the watch says. The bound is widened until the test has begun within it. */
function saidOf(source: string, running: string): string {
  const file = join(temporaryFolder(), 'hangs.ts');
  writeFileSync(file, OPEN + source);
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  for (let minutes = 0.02; ; minutes *= 4) {
    const words = ['--test', `--import=${WATCH}?minutes=${minutes}`, file];
    const { status, stdout } = spawnSync(process.execPath, words, { encoding: 'utf8', env });
    assert.equal(status, 1, stdout);
    if (MESSAGE.exec(stdout)?.groups?.['running'] === running) return stdout;
  }
}

describe('a test file in which nothing happens any more fails, with its processes, and says', () => {
  test('the test that runs, and what is open', () => {
    const source = `test('waits', async () => { await open(); await new Promise(() => {}); });`;
    const said = saidOf(source, 'waits');
    assert.match(said, /^Open: \{"type":"tcp","localEndpoint":\{"host":"127\.0\.0\.1","port":\d+\}/m);
    assert.match(said, /^Process \d+: sleep infinity/m);
  });

  test('that no test runs, where a hook failed before another one closed a server', () => {
    const source = `test('fails', async (t) => {
      t.after(() => { throw new Error('it cannot be removed'); });
      await open();
    });`;
    assert.match(saidOf(source, 'no test; the file waits for what is open'), /^Open: \{"type":"tcp"/m);
  });
});
