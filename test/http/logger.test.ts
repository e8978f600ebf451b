import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLogger, requireLogLevel, withoutUrlSecrets } from '#http/logger.ts';

/** The lines that a logger of the given environment writes. */
function logged(env: NodeJS.ProcessEnv, write: (logger: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  write(createLogger(env, { write: (line) => void lines.push(line) }));
  return lines;
}

describe('the log', () => {
  for (const [given, kept] of [
    ['https://host/a.mp4?X-Amz-Signature=hush', 'https://host/a.mp4'],
    ['read https://user:hush@host/a.mp4#hush failed', 'read https://host/a.mp4 failed'],
    ['s3://key:hush@bucket/a?versionId=hush and more', 's3://bucket/a and more'],
    ['postgres://user:hush@db:5432/jobs?sslkey=hush', 'postgres://db:5432/jobs'],
    ['{"url":"https://host/a?hush\\"hush"}', '{"url":"https://host/a"}'],
    ["'https://host/?hush'hush', 'https://host/b?hush'", "'https://host/ 'https://host/b"],
    ['{"m":"a https://host/a?hush\\nand\\tmore"}', '{"m":"a https://host/a\\nand\\tmore"}'],
    ['is it? yes: 5 // 3 @ home', 'is it? yes: 5 // 3 @ home'],
  ] as const) {
    test(`keeps of ${given} what is no secret`, () => {
      assert.equal(withoutUrlSecrets(given), kept);
    });
  }

  test('holds no query of a URL, wherever in an error it stands', () => {
    const cause = new Error('https://host/deep?hush');
    const error = Object.assign(new Error('https://host/a?hush', { cause }), { url: 'https://u:hush@host/' });
    const lines = logged({}, (logger) => logger.error({ err: error, more: { url: 'https://host/x?hush' } }, 'failed'));
    assert.equal(lines.length, 1);
    assert.doesNotMatch(lines[0] ?? '', /hush/);
    assert.match(lines[0] ?? '', /https:\/\/host\/deep/);
  });

  test('is JSON with the level as a word and an ISO time', () => {
    const [line = ''] = logged({}, (logger) => logger.info({ job_id: 'j' }, 'job accepted'));
    const { level, time, job_id: jobId, msg } = JSON.parse(line);
    assert.deepEqual([level, jobId, msg], ['info', 'j', 'job accepted']);
    assert.equal(new Date(time).toISOString(), time);
  });

  test('stays JSON where a URL is cut out of it', () => {
    const lines = logged({}, (logger) => logger.info({ url: 'https://host/?a="b"\\' }, 'x'));
    assert.doesNotThrow(() => JSON.parse(lines[0] ?? ''));
  });

  test('follows LOG_LEVEL', () => {
    for (const [level, written] of [
      ['ERROR', 0],
      ['silent', 0],
      ['debug', 1],
      [undefined, 1],
    ] as const) {
      const env = { LOG_LEVEL: level };
      requireLogLevel(env);
      assert.equal(logged(env, (logger) => logger.info('heard')).length, written);
    }
  });

  test('is refused a LOG_LEVEL that names no level, and still tells of it', () => {
    const env = { LOG_LEVEL: 'loud' };
    assert.throws(() => requireLogLevel(env), { reason: 'LOG_LEVEL_UNKNOWN' });
    assert.equal(logged(env, (logger) => logger.fatal('heard')).length, 1);
  });
});
