import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#errors/app-error.ts';
import { feedError } from '#packaging/programs/ffmpeg.ts';
import { type Program, runPrograms } from '#packaging/programs/run-programs.ts';
import { packagerError } from '#packaging/programs/shaka-packager.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const never = new AbortController().signal;
/** A limit that no test reaches. */
const NEVER_MS = 3_600_000;
let polls = 0;
const poll = (): number => polls++;

/** A program of Node that runs a script; it fails with PACKAGER_FAILED and what it wrote. */
function program(script: string, args: readonly string[] = []): Program {
  return {
    title: 'the program',
    path: process.execPath,
    args: ['-e', script, ...args],
    failure: ({ code, signal, errorText }) =>
      new AppError('PACKAGER_FAILED', { file: null, problem: `${code} ${signal} ${errorText}` }),
  };
}

/** Writes its process id to the file `path`, which is complete as soon as it exists. */
const WRITE_PID = `
  const { renameSync, writeFileSync } = require('node:fs');
  const [path, other] = process.argv.slice(1);
  writeFileSync(path + '.new', String(process.pid));
  renameSync(path + '.new', path);
`;

/** Writes its process id, starts a child that does so where there is a second file, and stays. */
const STAY = `
  ${WRITE_PID}
  const { spawn } = require('node:child_process');
  if (other !== undefined) spawn(process.execPath, [...process.execArgv, other], { stdio: 'inherit' });
  setInterval(() => {}, 1000);
`;

async function pidIn(path: string): Promise<number> {
  while (!existsSync(path)) await sleep(10);
  return Number(readFileSync(path, 'utf8'));
}

/** Waits until a process is gone, or only its parent has not yet taken note. */
async function gone(pid: number): Promise<void> {
  for (;;) {
    try {
      if (/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) return;
    } catch {
      return; // The process is gone.
    }
    await sleep(10);
  }
}

const reasonIs = (reason: string) => (error: unknown) => error instanceof AppError && error.reason === reason;

describe('programs that run side by side', () => {
  test('end well together', async () => {
    await runPrograms([program('process.exit(0)'), program('process.exit(0)')], { folder, signal: never, poll });
  });

  test('get nothing of the environment but where programs are found', async () => {
    process.env['PACKAGING_TEST_SECRET'] = 'secret';
    const script = 'process.exit(Object.keys(process.env).sort().join() === "HOME,LANG,PATH,TMPDIR" ? 0 : 1)';
    await runPrograms([program(script)], { folder, signal: never, poll });
  });

  test('fail together: the others are ended with what they started', async () => {
    const pidFiles = [join(folder, 'sibling'), join(folder, 'sibling.child')];
    const failing = program(
      `
      const wait = setInterval(() => {
        if (!require('node:fs').existsSync(process.argv[1])) return;
        console.error('it broke');
        process.exit(3);
      }, 10);
    `,
      pidFiles.slice(1),
    );
    await assert.rejects(
      runPrograms([program(STAY, pidFiles), failing], { folder, signal: never, poll }),
      reasonIs('PACKAGER_FAILED'),
    );
    for (const pidFile of pidFiles) await gone(await pidIn(pidFile));
  });

  test('are ended with what they started when the input is stopped', async () => {
    const pidFiles = [join(folder, 'stopped'), join(folder, 'stopped.child')];
    const stop = new AbortController();
    const running = runPrograms([program(STAY, pidFiles)], { folder, signal: stop.signal, poll });
    const pids = await Promise.all(pidFiles.map(pidIn));
    stop.abort(new Error('stopped'));
    await assert.rejects(running, /stopped/);
    for (const pid of pids) await gone(pid);
  });

  test('are not started when the input is stopped just before', async () => {
    const file = join(folder, 'not started');
    const stop = new AbortController();
    const write = "require('node:fs').writeFileSync(process.argv[1], '')";
    const running = runPrograms([program(write, [file])], { folder, signal: stop.signal, poll });
    stop.abort(new Error('stopped'));
    await assert.rejects(running, { message: 'stopped' });
    assert(!existsSync(file));
  });

  test('are ended where nothing gets on', async () => {
    const limits = { stallMs: 300, totalMs: NEVER_MS, memoryBytes: 1024 ** 3 };
    await assert.rejects(
      runPrograms([program('setInterval(() => {}, 1000)')], { folder, signal: never, poll: () => 0, limits }),
      reasonIs('PROGRAM_STALLED'),
    );
  });

  test('are ended where one waits at a named pipe for another that never opens it', async () => {
    const fifo = join(folder, 'pipe');
    execFileSync('mkfifo', [fifo]);
    const limits = { stallMs: 300, totalMs: NEVER_MS, memoryBytes: 1024 ** 3 };
    const pidFile = join(folder, 'reader');
    const reading = `${WRITE_PID} require('node:fs').readFileSync(other);`;
    const programs = [program(reading, [pidFile, fifo]), program('setInterval(() => {}, 1000)')];
    // Getting there counts as progress.
    const untilReading = (): number => (existsSync(pidFile) ? 0 : poll());
    await assert.rejects(
      runPrograms(programs, { folder, signal: never, poll: untilReading, limits }),
      reasonIs('PROGRAM_STALLED'),
    );
    await gone(await pidIn(pidFile));
  });

  test('are ended where their progress cannot be told, as on a disk that fails', async () => {
    const failing = (): number => {
      throw new Error('EIO');
    };
    await assert.rejects(
      runPrograms([program('setInterval(() => {}, 1000)')], { folder, signal: never, poll: failing }),
      { message: 'EIO' },
    );
  });

  test('are ended where they take too long, or too much memory', async () => {
    const tooLong = { stallMs: NEVER_MS, totalMs: 300, memoryBytes: 1024 ** 3 };
    const tooLarge = { stallMs: NEVER_MS, totalMs: NEVER_MS, memoryBytes: 1024 };
    for (const [limits, reason] of [
      [tooLong, 'PROGRAM_TOO_SLOW'],
      [tooLarge, 'PROGRAM_TOO_LARGE'],
    ] as const) {
      const running = runPrograms([program('setInterval(() => {}, 1000)')], { folder, signal: never, poll, limits });
      await assert.rejects(running, reasonIs(reason));
    }
  });

  test('that are not there are told of', async () => {
    const missing: Program = { ...program(''), path: '/nowhere/program' };
    await assert.rejects(runPrograms([missing], { folder, signal: never, poll }));
  });

  test('end together with the process that runs them, even where it is killed', async () => {
    const pidFile = join(folder, 'orphan');
    const entry = new URL('./run-and-wait.ts', import.meta.url).pathname;
    const parent = spawn(process.execPath, [entry, folder, STAY, pidFile], { stdio: 'ignore' });
    const pid = await pidIn(pidFile);
    parent.kill('SIGKILL');
    await once(parent, 'exit');
    await gone(pid);
  });
});

const reasonOf = (error: Error) => (error instanceof AppError ? error.reason : error.message);

describe('a program that was told to end', () => {
  test('is not taken for a fault of the file, and may be tried again', () => {
    const names = new Map([['source-0', 'film.mp4']]);
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) {
      const error = packagerError({ code: null, signal, errorText: '' }, names);
      assert.ok(error instanceof AppError && error.isTransient);
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
