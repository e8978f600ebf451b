import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { ifItAnswers } from '#bytes/file-system-gate.ts';

const answer = async (): Promise<string> => 'answer';

test('a file system that hangs holds one call, and those to others go on', async () => {
  const { promise: hanging, resolve: end } = Promise.withResolvers<string>();
  let calls = 0;
  const call = (): Promise<string> => {
    calls += 1;
    return hanging;
  };
  const asked = ['/proc/a', '/proc/b/c'].map((path) => ifItAnswers(path, call, 'none'));
  assert.equal(await ifItAnswers('/tmp/a', answer, 'none'), 'answer');
  assert.deepEqual(await Promise.all(asked), ['none', 'none']);
  assert.equal(await ifItAnswers('/proc/a', call, 'none'), 'none');
  assert.equal(calls, 1);
  end('answer');
  await setImmediate();
  assert.equal(await ifItAnswers('/proc/a', answer, 'none'), 'answer');
});

test('an error of a call is that of the caller', async () => {
  const failing = async (): Promise<never> => {
    throw new Error('no such file');
  };
  await assert.rejects(ifItAnswers('/proc/a', failing, 'none'), { message: 'no such file' });
});
