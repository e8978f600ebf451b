import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { watchExpiry } from '#provenance/check-identity.ts';
import type { CredentialDescription } from '#provenance/signing-identity.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.parse('2026-11-01T12:00:00.000Z');

/** A watch of an identity that ends some days after the start; `pass` lets days go by. */
function watched(t: TestContext, daysLeft: number) {
  t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: START_MS });
  const identity = { kind: 'configured', subject: 'CN=Signer', file: '/chain.pem', notAfter: '' };
  const endIn = (days: number) => {
    identity.notAfter = new Date(Date.now() + days * DAY_MS).toISOString();
  };
  endIn(daysLeft);
  const log = keptLog();
  const use = { identity: 'news', role: 'claim' } as const;
  t.after(watchExpiry(() => [{ credential: identity as CredentialDescription, use }], log));
  const pass = (days: number) => {
    for (let hours = 0; hours < days * 24; hours += 1) t.mock.timers.tick(HOUR_MS);
  };
  return { log, endIn, pass };
}

describe('the log, before an identity ends,', () => {
  test('is silent until 30 days before, and then warns once a day', async (t) => {
    const { log, pass } = watched(t, 40.5);
    pass(10);
    assert.deepEqual(log.lines, []);
    pass(31);
    assert.deepEqual(
      log.lines.map(({ level, fields }) => [level, (fields as { days_left?: number }).days_left]),
      [...Array.from({ length: 30 }, (_, index) => ['warn', 29 - index]), ['error', undefined]],
    );
  });

  test('warns at the start, with the end and the remedy', async (t) => {
    const { log } = watched(t, 3);
    assert.deepEqual(log.lines, [
      {
        level: 'warn',
        message: 'the signing identity ends soon',
        fields: {
          identity: 'news',
          role: 'claim',
          subject: 'CN=Signer',
          file: '/chain.pem',
          not_after: '2026-11-04T12:00:00.000Z',
          remedy: 'Renew it, and put the new certificate and key in the place of the old ones: no restart is needed.',
          days_left: 3,
        },
      },
    ]);
  });

  test('warns within ten seconds when another pair ends soon, and when that has ended', async (t) => {
    const { log, endIn } = watched(t, 90);
    endIn(15 / 86_400);
    for (let look = 0; look < 3; look += 1) t.mock.timers.tick(10_000);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'error'],
    );
  });

  test('says once a day that it has ended, until it is renewed', async (t) => {
    const { log, pass, endIn } = watched(t, -0.5);
    pass(2);
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['error', 'error', 'error'],
    );
    endIn(90);
    pass(20);
    assert.equal(log.lines.length, 3);
  });

  test('warns on the next look where the clock was set', async (t) => {
    const { log } = watched(t, 100);
    t.mock.timers.setTime(START_MS + 90 * DAY_MS);
    t.mock.timers.tick(60_000);
    assert.equal(log.lines.length, 1);
  });
});
