import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';

/** Opens files until no more may be opened, and starts a process. */
const WITHOUT_DESCRIPTORS = `
  import { openSync } from 'node:fs';
  import { Launcher } from '#processes/launcher.ts';
  const held = [];
  try {
    for (;;) held.push(openSync('/dev/null', 'r'));
  } catch {}
  process.exitCode = 2;
  try {
    new Launcher().launch(new URL('file:///dev/null'), { execArgv: [] });
  } catch {
    process.exitCode = 0;
  }
`;

test('a process for which no file can be opened is refused at once, and nothing is heard of it later', () => {
  const node = [process.execPath, '--input-type=module', '--eval', WITHOUT_DESCRIPTORS];
  assert.doesNotThrow(() => execFileSync('prlimit', ['--nofile=64', ...node], { stdio: 'pipe' }));
});
