import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FileWatch } from '#provenance/file-watch.ts';

const MAX_ATTEMPTS = 5;

/** A watch whose looks the test makes, over files that are a text. `problem` is what keeps them from being used. */
function watched(t: TestContext) {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const files = { state: 'first', problem: null as string | null, isBusy: false };
  const loaded: string[] = [];
  const refused: string[] = [];
  let attempts = 0;
  const watch = new FileWatch({
    stateOf: async () => files.state,
    usedState: files.state,
    reload: async () => {
      attempts += 1;
      if (files.isBusy) return false;
      if (files.problem !== null) throw new Error(files.problem);
      loaded.push(files.state);
      return true;
    },
    refused: ({ message }) => refused.push(message),
    maxAttempts: MAX_ATTEMPTS,
    pollIntervalMs: 1,
  });
  t.after(() => watch.close());
  const look = async (count = 1): Promise<void> => {
    for (let done = 0; done < count; done += 1) {
      t.mock.timers.tick(1);
      await setImmediate();
    }
  };
  return { files, loaded, refused, look, attempts: () => attempts };
}

describe('a watch of files', () => {
  test('takes over a change once two looks in a row find the same', async (t) => {
    const { files, loaded, look } = watched(t);
    await look(3);
    assert.deepEqual(loaded, []);
    for (const state of ['half', 'more', 'whole']) {
      files.state = state;
      await look();
    }
    assert.deepEqual(loaded, []);
    await look(3);
    assert.deepEqual(loaded, ['whole']);
  });

  test('reads files again at each look while they cannot be used, and tells of it once, after the last attempt', async (t) => {
    const { files, loaded, refused, look } = watched(t);
    [files.state, files.problem] = ['second', 'the key does not fit'];
    await look(MAX_ATTEMPTS);
    assert.deepEqual(refused, [], 'the attempt after the first look is the last one');
    await look(10 * MAX_ATTEMPTS);
    assert.equal(refused.length, 1);
    files.problem = null;
    await look(MAX_ATTEMPTS);
    assert.deepEqual(loaded, ['second']);
  });

  test('reads files less often after the last attempt', async (t) => {
    const { files, look, attempts } = watched(t);
    [files.state, files.problem] = ['second', 'the key does not fit'];
    await look(1 + 4 * MAX_ATTEMPTS);
    assert.equal(attempts(), MAX_ATTEMPTS + 3);
  });

  test('tells of the next change that cannot be used, and tries it as often', async (t) => {
    const { files, refused, look } = watched(t);
    files.problem = 'the key does not fit';
    for (const state of ['second', 'third']) {
      files.state = state;
      await look(1 + MAX_ATTEMPTS);
    }
    assert.equal(refused.length, 2);
  });

  test('does not count attempts that could not be made', async (t) => {
    const { files, loaded, refused, look } = watched(t);
    [files.state, files.isBusy] = ['second', true];
    await look(3 * MAX_ATTEMPTS);
    files.isBusy = false;
    await look();
    assert.deepEqual([loaded, refused], [['second'], []]);
  });
});
