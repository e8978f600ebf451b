import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { createAssertionChecker } from '#provenance/assertion-checker.ts';
import type { CustomAssertion } from '#provenance/manifest-request.ts';

const MISBEHAVING_PROCESS = new URL('./misbehaving-dry-run.ts', import.meta.url);
/** More than any check takes on a machine of any speed, and than the start of a process may take. */
const AMPLE = { timeMs: 600_000, memoryBytes: 1024 ** 3 };
const { signal } = new AbortController();
const context = { '@context': { exif: 'http://ns.adobe.com/exif/1.0/' }, 'exif:GPSLatitude': '39,21.102N' };

describe('the checker of assertions', () => {
  const checker = createAssertionChecker({ budgets: AMPLE });
  after(() => checker.close());

  test('passes what manifests carry', async () => {
    const carried: CustomAssertion[] = [
      {
        label: 'com.example',
        data: { b: [1, 2, 3], a: [[1.5, -2], 0.30000000000000004, null, true, 'ü€😀\0', {}, []] },
      },
      { label: 'com.example.scalar', data: 42 },
      { label: 'com.example.null', data: null },
      { label: 'com.example.numbers', data: [1, 2, 300] },
      { label: 'com.example.prototype', data: JSON.parse('{"__proto__": {"x": 1}, "constructor": 2, "": 3}') },
      { label: 'c2pa.metadata', data: context },
      { label: 'org.example.metadata', data: context },
      { label: 'c2pa.training-mining', data: { entries: { 'c2pa.ai_training': { use: 'notAllowed' } } } },
      { label: 'cawg.training-mining', data: { entries: { 'cawg.ai_training': { use: 'allowed' } } } },
      { label: 'cawg.metadata', data: context },
      {
        label: 'c2pa.soft-binding',
        data: { alg: 'com.example.watermark', blocks: [{ scope: {}, value: [1, 2, 255] }] },
      },
      { label: 'c2pa.asset-ref', data: { references: [{ reference: { uri: 'https://example.com/film.mp4' } }] } },
    ];
    await checker.checkAssertions(carried, signal);
    await checker.checkAssertions([], signal);
  });

  test('refuses actions that a reader calls invalid, and passes those that it carries', async () => {
    const parameters = {
      'com.example.x': [{ y: 0.1 }, [1, 2, 255], null, 'ü'],
      sourceLanguage: 'en',
      targetLanguage: 'de',
    };
    const softwareAgent = { name: 'Example Cut', operating_system: 'Linux' };
    const when = '2026-11-21T09:30:00.123456789+05:45';
    const carried = { action: 'c2pa.translated', when, softwareAgent, description: 'ü\n', parameters };
    await checker.checkAssertions([], signal, [
      carried,
      { action: 'c2pa.transcoded' },
      { action: 'com.example.graded' },
    ]);
    for (const action of ['c2pa.translated', 'c2pa.removed']) {
      const location = { field: 'params.actions' };
      await assert.rejects(checker.checkAssertions([], signal, [carried, { action }]), (error) => {
        assert.ok(error instanceof AppError);
        assert.deepEqual([error.reason, error.location], ['ACTIONS_REFUSED', location]);
        return true;
      });
    }
    const [binding, bound] = [
      { label: 'c2pa.soft-binding', data: { alg: 'com.x', blocks: [{ scope: {}, value: [1] }] } },
      { action: 'c2pa.watermarked.bound' },
    ];
    await checker.checkAssertions([{ label: 'a.b', data: 1 }, binding], signal, [bound]);
  });

  test('passes whole numbers beyond those that JavaScript counts with', async () => {
    for (const data of [2 ** 53 - 1, 2 ** 53, -(2 ** 53), 2 ** 53 + 2, 12345678901234568, 2 ** 60, -(2 ** 64)]) {
      await checker.checkAssertions([{ label: 'com.example.id', data: { data } }], signal);
      await checker.checkAssertions([], signal, [{ action: 'c2pa.edited', parameters: { 'com.example.id': data } }]);
    }
  });

  const refused: readonly CustomAssertion[] = [
    { label: 'org.example.metadata', data: { without: 'context' } },
    { label: 'c2pa.metadata', data: 5 },
    { label: 'c2pa.metadata', data: { ...context, 'exif:Model': 'no property of c2pa.metadata' } },
    {
      label: 'c2pa.soft-binding',
      data: { alg: 'com.x', blocks: [{ scope: { timespan: { start: 'now' } }, value: [1] }] },
    },
    { label: 'stds.schema-org.CreativeWork', data: { a: 1 } },
    { label: 'com.example.text', data: '\ud800' },
  ];
  for (const assertion of refused) {
    test(`refuses ${assertion.label} with ${JSON.stringify(assertion.data)}, and says which it is`, async () => {
      const fit = Array.from(
        { length: 6 },
        (_, index): CustomAssertion => ({ label: `com.example.fit${index}`, data: 0 }),
      );
      const rejection = { code: 'VALIDATION_FAILED', location: { field: 'params.assertions[4].data' } };
      await assert.rejects(checker.checkAssertions(fit.toSpliced(4, 0, assertion), signal), rejection);
    });
  }

  test('refuses labels before any manifest is built', async () => {
    const rejection = { reason: 'ASSERTION_LABEL_REFUSED', location: { field: 'params.assertions[0].label' } };
    await assert.rejects(checker.checkAssertions([{ label: 'c2pa.hash.data', data: 1 }], signal), rejection);
  });

  test('answers many at once, each for itself', async () => {
    const results = await Promise.allSettled(
      Array.from({ length: 40 }, (_, index) => {
        const data = index % 2 === 0 ? context : { without: 'context' };
        return checker.checkAssertions([{ label: 'org.example.metadata', data }], signal);
      }),
    );
    assert.deepEqual(
      results.map(({ status }) => status === 'fulfilled'),
      results.map((_, index) => index % 2 === 0),
    );
  });

  test('takes no more than it can hold', async () => {
    const checks = Array.from({ length: 300 }, () => checker.checkAssertions([{ label: 'a.b', data: 1 }], signal));
    const reasons = (await Promise.allSettled(checks)).map((result) =>
      result.status === 'rejected' ? result.reason.reason : 'passed',
    );
    assert.deepEqual(new Set(reasons), new Set(['passed', 'ASSERTION_CHECKS_BUSY']));
  });

  test('stops waiting with the signal, and goes on with the next', async () => {
    const controller = new AbortController();
    const stop = new Error('stop');
    const waiting = checker.checkAssertions([{ label: 'a.b', data: 'x'.repeat(1e6) }], controller.signal);
    controller.abort(stop);
    await assert.rejects(waiting, stop);
    await assert.rejects(checker.checkAssertions([{ label: 'a.b', data: 1 }], controller.signal), stop);
    await checker.checkAssertions([{ label: 'a.b', data: 1 }], signal);
  });

  test('can be closed, also while it is busy or was never used, and starts again where it is used', async () => {
    await createAssertionChecker().close();
    const other = createAssertionChecker({ budgets: AMPLE });
    const busy = other.checkAssertions([{ label: 'a.b', data: 1 }], signal);
    await Promise.all([busy, other.close()]);
    await other.checkAssertions([{ label: 'a.b', data: 1 }], signal);
    await other.close();
  });

  test('refuses what its process does not survive, and starts another one for the next', async () => {
    const other = createAssertionChecker({ entry: MISBEHAVING_PROCESS, budgets: AMPLE });
    const deadly = { label: 'x.die', data: 1 };
    await assert.rejects(other.checkAssertions([deadly], signal), { reason: 'ASSERTION_DATA_REFUSED' });
    const [first, second] = await Promise.allSettled([
      other.checkAssertions([deadly, { label: 'a.b', data: 1 }], signal),
      other.checkAssertions([{ label: 'a.c', data: 1 }], signal),
    ]);
    assert.equal(first.status === 'rejected' && first.reason.reason, 'ASSERTIONS_REFUSED');
    assert.equal(second.status, 'fulfilled', 'a crash costs only its own request');
    await other.close();
  });

  test('stops what passes its budget, and names the budget', async () => {
    const withBudgets = (budgets: typeof AMPLE) => createAssertionChecker({ entry: MISBEHAVING_PROCESS, budgets });
    const hasty = withBudgets({ timeMs: 500, memoryBytes: 2 ** 40 });
    const frugal = withBudgets({ ...AMPLE, memoryBytes: 419_430_400 });
    for (const [other, label, details] of [
      [hasty, 'x.hang', { budget: 'time', limit: 500, unit: 'ms' }],
      [frugal, 'x.grow', { budget: 'memory', limit: 419_430_400, unit: 'bytes' }],
    ] as const) {
      await assert.rejects(other.checkAssertions([{ label, data: 1 }], signal), {
        code: 'VALIDATION_FAILED',
        reason: 'ASSERTIONS_TOO_COSTLY',
        details,
        location: { field: 'params.assertions[0].data' },
      });
    }
    await frugal.checkAssertions([{ label: 'a.b', data: 1 }], signal);
    await Promise.all([hasty.close(), frugal.close()]);
  });

  test('passes small requests while a large one keeps a process busy, and leaves them their part of the queue', async () => {
    const other = createAssertionChecker({ entry: MISBEHAVING_PROCESS, budgets: AMPLE });
    const gone = new AbortController();
    const large = (label: string) => ({ label, data: 'x'.repeat(100_000) });
    const ends: string[] = [];
    const hanging = Array.from({ length: 128 }, (_, index) =>
      other.checkAssertions([large('x.hang')], gone.signal).catch(() => ends.push(`large ${index}`)),
    );
    await assert.rejects(other.checkAssertions([large('a.b')], signal), { reason: 'ASSERTION_CHECKS_BUSY' });
    const small = Array.from({ length: 3 }, () => other.checkAssertions([{ label: 'a.b', data: 1 }], signal));
    await Promise.all(small);
    assert.deepEqual(ends, [], 'no large one has finished');
    gone.abort();
    await Promise.all(hanging);
    await other.close();
  });

  test('blames no assertion where its process does not start', async (context) => {
    process.env['EXIT_AT_START'] = 'yes';
    context.after(() => delete process.env['EXIT_AT_START']);
    const launcher = new Launcher({ variables: ['EXIT_AT_START'] });
    const other = createAssertionChecker({ entry: MISBEHAVING_PROCESS, launcher });
    const failure = await other.checkAssertions([{ label: 'a.b', data: 1 }], signal).catch((error) => error);
    assert.ok(failure instanceof Error && !(failure instanceof AppError));
    await other.close();
  });

  test('ends its process when there is nothing to check, and starts another one when there is', async () => {
    const before = childrenOfThis();
    const other = createAssertionChecker({ idleTimeoutMs: 1, budgets: AMPLE });
    for (let use = 0; use < 2; use += 1) {
      await other.checkAssertions([{ label: 'a.b', data: 1 }], signal);
      while (childrenOfThis().some((child) => !before.includes(child))) await sleep(5);
    }
    await other.close();
  });

  test('replaces its process, at once where it is idle, else after its batch', async () => {
    const before = childrenOfThis();
    const started = () => childrenOfThis().filter((child) => !before.includes(child));
    const other = createAssertionChecker({ budgets: AMPLE });
    await other.checkAssertions([{ label: 'a.b', data: 1 }], signal);
    other.replaceProcesses();
    while (started().length > 0) await sleep(5);
    const checked = other.checkAssertions([{ label: 'a.b', data: 1 }], signal);
    while (started().length === 0) await sleep(5);
    other.replaceProcesses();
    await checked;
    while (started().length > 0) await sleep(5);
    await other.close();
  });

  test('keeps no process alive', async () => {
    const child = fork(fileURLToPath(new URL('./check-once.ts', import.meta.url)));
    const [exitCode] = await once(child, 'exit');
    assert.equal(exitCode, 0);
  });
});

function childrenOfThis(): string[] {
  const { pid } = process;
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
}
