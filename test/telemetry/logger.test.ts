import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { createLogger, openLogger, requireLogLevel, withoutUrlSecrets } from '#telemetry/logger.ts';

/** The lines that a logger of the given environment writes. */
function logged(env: NodeJS.ProcessEnv, write: (logger: ReturnType<typeof createLogger>) => void): string[] {
  const lines: string[] = [];
  write(createLogger(env, { write: (line) => void lines.push(line) }));
  return lines;
}

/** Returns what a logger writes to a terminal, or elsewhere. */
async function written(isTTY: boolean, write: (logger: ReturnType<typeof createLogger>) => void): Promise<string> {
  let text = '';
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      text += chunk;
      done();
    },
  });
  write(isTTY ? await openLogger({}, Object.assign(output, { isTTY })) : createLogger({}, output));
  return text;
}

describe('the log on a terminal', () => {
  test('is a line for people with its fields', async () => {
    const text = await written(true, (logger) => logger.warn({ input: 'film.mp4' }, 'input failed'));
    assert.match(text, /^\[\d\d:\d\d:\d\d\] WARN: input failed \{"input":"film.mp4"\}\n$/);
  });

  test('cannot be steered by a name, and keeps what is no control character', async () => {
    const name = 'a\u001b[2J\r\b\u009b31m\u007f\u0000\\u001b é "quoted".mp4';
    const text = await written(true, (logger) => logger.info({ name }, name));
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be there.
    assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
    assert.match(text, /\\u001b é "quoted"\.mp4\n/);
  });

  test('holds no query of a URL', async () => {
    assert.doesNotMatch(await written(true, (logger) => logger.info({ url: 'https://host/a?hush' }, 'x')), /hush/);
  });

  test('is JSON where there is no terminal', async () => {
    assert.equal(JSON.parse(await written(false, (logger) => logger.info('job accepted'))).msg, 'job accepted');
  });
});

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

  test('has the stack of a bug, and none of an error that names its cause', () => {
    const away = new AppError('DATABASE_UNREACHABLE', { address: 'db:5432', problem: 'nothing listens there' });
    const lines = logged({}, (logger) => {
      for (const err of [away, new TypeError('a bug')]) logger.error({ err }, 'request failed');
    });
    const [named, bug] = lines.map((line) => JSON.parse(line).err);
    assert.deepEqual([named.message, named.stack], [away.message, undefined]);
    assert.match(bug.stack, /TypeError: a bug\n/);
  });

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
