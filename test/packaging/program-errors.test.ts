import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { feedError } from '#packaging/programs/ffmpeg.ts';
import { packagerError } from '#packaging/programs/shaka-packager.ts';

const reasonOf = (error: Error) => (error instanceof AppError ? error.reason : error.message);

describe('a program that was told to end', () => {
  test('is not taken for a fault of the file, and may be tried again', () => {
    const names = new Map([['source-0', 'film.mp4']]);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      const error = packagerError({ code: null, signal, errorText: '' }, names);
      assert.ok(error instanceof AppError && error.transient);
      assert.equal(error.reason, 'PROGRAM_TOLD_TO_END');
    }
    assert.equal(reasonOf(packagerError({ code: null, signal: 'SIGSEGV', errorText: '' }, names)), 'PACKAGER_FAILED');
  });

  test('is known where it is ffmpeg, which ends as it likes then', async () => {
    const ffmpeg = spawn('ffmpeg', ['-v', 'error', '-re', '-f', 'lavfi', '-i', 'sine', '-f', 's16le', '-']);
    let errorText = '';
    ffmpeg.stderr.setEncoding('utf8').on('data', (text: string) => (errorText += text));
    await once(ffmpeg.stdout, 'data');
    ffmpeg.stdout.resume();
    ffmpeg.kill('SIGTERM');
    const [code, signal] = (await once(ffmpeg, 'close')) as [number | null, NodeJS.Signals | null];
    assert.equal(reasonOf(feedError({ code, signal, errorText }, 'film.mov')), 'PROGRAM_TOLD_TO_END');
  });

  test('is told from one that may not read its file, and from one that cannot', () => {
    const refused = { code: 255, signal: null, errorText: 'source-0: Operation not permitted' };
    assert.equal(reasonOf(feedError(refused, 'film.mov')), 'FEED_FAILED');
    assert.equal(reasonOf(feedError({ ...refused, code: 183, errorText: 'Invalid data' }, 'film.mov')), 'FEED_FAILED');
  });
});

describe('an error of the packager', () => {
  test('names the file whose subtitles it was given', () => {
    const names = new Map([
      ['source-0', 'film.mp4'],
      ['text-0.vtt', 'film.en.vtt'],
    ]);
    const errorText = 'Packaging Error: 5 (PARSER_FAILURE): Failed to parse text-0.vtt';
    const error = packagerError({ code: 2, signal: null, errorText }, names);
    assert.ok(error instanceof AppError);
    assert.equal((error.details as { file: string | null }).file, 'film.en.vtt');
  });
});
