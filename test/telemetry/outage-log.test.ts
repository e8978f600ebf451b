import assert from 'node:assert/strict';
import { beforeEach, describe, mock, test } from 'node:test';
import { OutageLog } from '#telemetry/outage-log.ts';
import { limitRepeats } from '#telemetry/repeat-limit.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';

const TEXTS = { level: 'warn', begins: 'is away', goesOn: 'is still away', ends: 'works again' } as const;

/** A log of outages behind the limit on repeats, with the seconds and texts of its lines. */
function outageLog() {
  const log = keptLog();
  const outages = new OutageLog(limitRepeats(log), TEXTS);
  return {
    log,
    away: (problem = 'x') => outages.away('signer', 'SIGNATURE_FAILED', problem),
    works: (options?: { isUsed: boolean }) => outages.works('signer', options),
    texts: () => log.lines.map(({ message }) => message),
  };
}

describe('the log of an outage', () => {
  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'] });
  });

  test('says at once that it begins and ends, and each minute in between why', () => {
    const { log, away, works, texts } = outageLog();
    away('first');
    mock.timers.tick(50_000);
    away('second');
    mock.timers.tick(80_000);
    works();
    assert.deepEqual(texts(), ['is away', 'is still away', 'is still away', 'works again']);
    const known = { dependency: 'signer', reason: 'SIGNATURE_FAILED', since: new Date(0) };
    assert.deepEqual(log.lines[1]?.fields, { ...known, problem: 'second', met_at: new Date(50_000) });
    assert.deepEqual(log.lines[3], {
      ...{ level: 'info', message: 'works again' },
      fields: { dependency: 'signer', ms: 130_000 },
    });
    mock.timers.tick(300_000);
    assert.equal(log.lines.length, 4);
  });

  test('has a last line that is true where something comes and goes each second, and few lines', () => {
    const { away, works, texts } = outageLog();
    for (let second = 0; second < 59; second += 2) {
      away();
      assert.notEqual(texts().at(-1), 'works again');
      mock.timers.tick(1_000);
      works();
      mock.timers.tick(1_000);
    }
    assert.deepEqual(texts().slice(0, 3), ['is away', 'works again', 'is away']);
    mock.timers.tick(60_000);
    assert.deepEqual(texts().slice(3), ['works again']);
  });

  test('says that something works which was only probed when nobody has met a problem until the next minute', () => {
    const { away, works, texts } = outageLog();
    away();
    mock.timers.tick(10_000);
    works({ isUsed: false });
    away();
    mock.timers.tick(50_000);
    works({ isUsed: false });
    assert.deepEqual(texts(), ['is away', 'is still away']);
    mock.timers.tick(60_000);
    assert.equal(texts().at(-1), 'works again');
  });
});
