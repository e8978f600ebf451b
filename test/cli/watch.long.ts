import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PROGRAM } from './run-attestream.ts';

const SAMPLE = fileURLToPath(new URL('../../samples/four-notes.mp3', import.meta.url));
const COUNT = 20;

test('attestream watch signs each file once, however often it is killed', async (t) => {
  const above = temporaryFolder();
  const [folder, output, done] = [join(above, 'in'), join(above, 'out'), join(above, 'in', 'done')];
  mkdirSync(folder);
  for (let index = 0; index < COUNT; index += 1) cpSync(SAMPLE, join(folder, `${index}.mp3`));
  const env = { ...process.env, XDG_STATE_HOME: join(above, 'state'), XDG_DATA_HOME: join(above, 'data') };
  let child: ChildProcess | undefined;
  t.after(() => child?.kill('SIGKILL'));
  const doneCount = (): number => (existsSync(done) ? readdirSync(done).length : 0);
  for (const enough of [1, COUNT / 2, COUNT]) {
    child = spawn(process.execPath, [PROGRAM, 'watch', folder, '--output', output], { env, stdio: 'ignore' });
    await until(async () => doneCount() >= enough);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  assert.equal(doneCount(), COUNT);
  assert.deepEqual(readdirSync(join(folder, 'failed')), []);
  // An output whose source had just moved when the last watch was killed is there after the next start.
  child = spawn(process.execPath, [PROGRAM, 'watch', folder, '--output', output], { env, stdio: 'ignore' });
  await until(async () => readdirSync(output).filter((name) => !name.startsWith('.')).length === COUNT);
});
