import assert from 'node:assert/strict';
import { beforeEach, describe, mock, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { limitRepeats } from '#telemetry/repeat-limit.ts';
import { keptLog } from '../support/jobs/test-jobs.ts';

const AWAY = { err: new AppError('DATABASE_UNREACHABLE', { address: 'db:5432', problem: 'nothing listens there' }) };

describe('warnings and errors of the same cause', () => {
  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ['setTimeout', 'Date'] });
  });

  test('are one line a minute, with their number, whatever they could not do', () => {
    const log = keptLog();
    const limited = limitRepeats(log);
    for (let minute = 0; minute < 3; minute += 1) {
      for (let times = 0; times < 50; times += 1) {
        limited.error(AWAY, 'the job store could not be written');
        limited.warn(AWAY, 'the heartbeat of this node could not be written');
      }
      mock.timers.tick(60_000);
    }
    const repeats = log.lines.map(({ fields }) => ('repeats' in fields ? fields.repeats : 'first'));
    assert.deepEqual(repeats, ['first', 99, 100, 100]);
  });

  test('tell from when to when they came in a line that does not look new, which is written when they may be over', () => {
    const log = keptLog();
    const limited = limitRepeats(log);
    limited.error(AWAY, 'the job store could not be written');
    for (let times = 0; times < 2; times += 1) {
      mock.timers.tick(10_000);
      limited.error(AWAY, 'the job store could not be written');
    }
    mock.timers.tick(40_000);
    const [, line] = log.lines;
    assert.equal(line?.message, 'repeated: the job store could not be written');
    const times = { first_at: new Date(10_000), last_at: new Date(20_000) };
    assert.deepEqual(line.fields, { ...AWAY, repeats: 2, ...times });
  });

  test('are written at once again after a minute without any', () => {
    const log = keptLog();
    const limited = limitRepeats(log);
    limited.error(AWAY, 'the job store could not be written');
    mock.timers.tick(60_000);
    limited.error(AWAY, 'the job store could not be written');
    assert.deepEqual(
      log.lines.map(({ level, fields }) => [level, 'repeats' in fields]),
      [
        ['error', false],
        ['error', false],
      ],
    );
  });

  test('stay in the log as information where they name a job', () => {
    const log = keptLog();
    const limited = limitRepeats(log);
    for (const job_id of ['a', 'b', 'c']) limited.warn({ job_id, reason: 'READ_BACK_FAILED' }, 'input failed');
    assert.deepEqual(
      log.lines.map(({ level }) => level),
      ['warn', 'info', 'info'],
    );
  });

  test('are left out where they name a request, whose own line has the reason', () => {
    const log = keptLog();
    const limited = limitRepeats(log);
    for (const request_id of ['a', 'b', 'c']) limited.error({ request_id, ...AWAY }, 'request failed');
    mock.timers.tick(60_000);
    assert.deepEqual(
      log.lines.map(({ level, fields }) => [level, 'repeats' in fields && fields.repeats]),
      [
        ['error', false],
        ['error', 2],
      ],
    );
  });

  test('are told apart by the dependency, and not limited without a cause', () => {
    const log = keptLog();
    const limited = limitRepeats(log);
    for (const dependency of ['input_bucket:a', 'input_bucket:b', 'input_bucket:a'])
      limited.warn({ dependency, reason: 'S3_UNREACHABLE' }, 'a dependency is away');
    for (const job_id of ['a', 'b']) limited.error({ job_id, stack: 'at x' }, 'an input met a bug');
    assert.deepEqual(
      log.lines.map(({ message }) => message),
      ['a dependency is away', 'a dependency is away', 'an input met a bug', 'an input met a bug'],
    );
  });
});
