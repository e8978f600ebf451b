import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { describe, test } from 'node:test';
import { Child } from '#processes/child.ts';
import { Launcher } from '#processes/launcher.ts';

/** `talk` says something all the time, and never answers. */
export type Script = 'answer' | 'exit' | 'hang' | 'talk' | 'last words' | 'garble' | 'answer nothing';

const SCRIPTED = new URL('./scripted-child.ts', import.meta.url);
const LONG = { boundMs: 3_600_000, because: 'because an hour is over' };

function start(onEvent?: (event: string) => void): Child<Script, Script, string> {
  return new Child(new Launcher(), SCRIPTED, { execArgv: [], ...(onEvent && { onEvent }) });
}

describe('a child process', () => {
  test('answers one request after the other', async () => {
    const child = start();
    assert.equal(await child.ask('answer', LONG), 'answer');
    assert.equal(await child.ask('answer', LONG), 'answer');
    child.kill();
    await child.exited;
  });

  test('answers nothing where it exits, and says how it did', async () => {
    const child = start();
    assert.equal(await child.ask('exit', LONG), null);
    assert.deepEqual(child.exit, { cause: 'with the exit code 7', signal: null, wasKilled: false });
    assert.equal(await child.ask('answer', LONG), null);
  });

  test('exits because of an error where the system cannot start it', async () => {
    class Unable extends Launcher {
      override launch(): ChildProcess {
        return spawn('/no/such/program', [], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
      }
    }
    const child = new Child<Script, Script>(new Unable(), SCRIPTED, { execArgv: [] });
    assert.equal(await child.ask('answer', LONG), null);
    assert.match(child.exit?.cause ?? '', /^because of an error \(.*ENOENT\)$/);
  });

  test('is killed where its answer does not come in time', async () => {
    const child = start();
    await child.ask('answer', LONG);
    assert.equal(await child.ask('hang', { boundMs: 1, because: 'because it hung' }), null);
    assert.equal(child.exit?.cause, 'because it hung');
  });

  test('is not killed while the watch is renewed, and is when it ends', async () => {
    let words = 0;
    const child = start(() => {
      words += 1;
      child.renewWatch();
      if (words === 20) child.watch(1, 'because it talked enough');
    });
    assert.equal(await child.ask('talk', { boundMs: 60_000, because: 'because it was silent' }), null);
    assert.equal(child.exit?.cause, 'because it talked enough');
  });

  test('is killed for what a sample finds', async () => {
    const child = start();
    const bounds = { ...LONG, overBudget: () => 'patience' };
    assert.equal(await child.ask('hang', bounds), null);
    assert.equal(child.exit?.cause, 'because it was over its budget (patience)');
  });

  test('has said all that it sent before it exited', async () => {
    const words: string[] = [];
    const child = start((word) => void words.push(word));
    assert.equal(await child.ask('last words', LONG), null);
    assert.equal(words.at(-1), 'word 99');
  });

  test('is killed when it sends what is no message', async () => {
    for (const script of ['garble', 'answer nothing'] as const) {
      const child = start();
      assert.equal(await child.ask(script, LONG), null);
      assert.equal(child.exit?.cause, 'because it sent a message that cannot be read');
    }
  });

  test('calls when it was idle, and not while a request is open', async () => {
    const child = start();
    await child.ask('answer', LONG);
    const idle = Promise.withResolvers<void>();
    child.whenIdle(0, idle.resolve);
    await idle.promise;
    child.whenIdle(1, () => assert.fail('a request was open'));
    assert.equal(await child.ask('answer', LONG), 'answer');
    child.kill();
    await child.exited;
  });

  test('is killed when it does not quit as it was asked to', async () => {
    const child = start();
    await child.ask('answer', LONG);
    await child.quit('hang', 1, 'because it did not quit');
    assert.equal(child.exit?.cause, 'because it did not quit');
  });
});
