/**
 * An input worker whose inputs say what to do, as steps in their path: `sleep 20; append /tmp/log; crash SIGSEGV`.
 * `sleep`, `stubborn` and `block` take milliseconds, or `for-ever`.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { appendFile, type FileHandle, open, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '#errors/app-error.ts';
import type { InputContext, InputPhase, InputWork } from '#operations/operation.ts';
import { runInputWorker } from '#workers/input-worker.ts';

type Step = (argument: string, context: InputContext, work: InputWork) => unknown;

/** The longest pause that a timer takes: 24 days. */
const FOR_EVER_MS = 2 ** 31 - 1;

const pauseMs = (text: string): number => (text === 'for-ever' ? FOR_EVER_MS : Number(text));

let taint = (): void => undefined;
let canSign = true;

const steps: Readonly<Record<string, Step>> = {
  sleep: (ms, { signal }) => sleep(pauseMs(ms), undefined, { signal }),
  stubborn: (ms) => sleep(pauseMs(ms)),
  block: (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs(ms)),
  append: (file, _context, work) => appendFile(file, `${work.inputIndex} ${work.attempt} ${process.pid}\n`),
  write: (file, _context, work) => writeFile(file, `${work.jobId} ${work.inputIndex}\n`),
  deliver: async (file, context, work) => {
    await context.confirmLease();
    await appendFile(file, `${work.inputIndex} ${work.attempt} ${process.pid}\n`);
  },
  claim: (destination, context) => context.reserveOutputPath(destination),
  opened: (bytes, { opened }) => opened({ bytes: Number(bytes), files: 0 }),
  reached: (phase, { reached }) => reached(phase as InputPhase),
  loop: () => {
    for (;;);
  },
  'loop-in-program': async () => {
    const child = spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' });
    await once(child, 'exit');
  },
  grow: async () => {
    for (const kept: Buffer[] = []; ; await sleep(20)) kept.push(Buffer.alloc(16 * 1024 * 1024, 1));
  },
  pour: async (file) => {
    for (const part = Buffer.alloc(1024 * 1024); ; ) await writeFile(file, part);
  },
  'grow-at-once': () => Buffer.alloc(3 * 1024 ** 3),
  'open-too-many': async () => {
    const opened: FileHandle[] = [];
    try {
      for (;;) opened.push(await open('/dev/null'));
    } finally {
      for (const file of opened) await file.close();
    }
  },
  'await-signature': (file, context, work) =>
    context.awaitSignature(async () => steps['wait-for']?.(file, context, work)),
  progress: (argument, context) => {
    const [done, total = done] = argument.split(' of ').map(Number);
    context.progress(done ?? 0, total ?? 0);
  },
  crash: (signal) => {
    process.kill(process.pid, signal as NodeJS.Signals);
    return sleep(FOR_EVER_MS);
  },
  'kill-service-once': (marker) => {
    if (existsSync(marker)) return;
    writeFileSync(marker, '');
    process.kill(process.ppid, 'SIGKILL');
    return sleep(FOR_EVER_MS);
  },
  'kill-service': () => {
    process.kill(process.ppid, 'SIGKILL');
    return sleep(FOR_EVER_MS);
  },
  'wait-for': async (file) => {
    while (!existsSync(file)) await sleep(5);
  },
  spawn: (pidFile) => {
    const child = spawn('sleep', ['infinity'], { stdio: 'ignore' });
    // A test that waits for the file reads it at once, so it appears with its contents.
    writeFileSync(`${pidFile}.new`, String(child.pid));
    renameSync(`${pidFile}.new`, pidFile);
  },
  exit: (code) => process.exit(Number(code)),
  /** Sends the service what no worker sends, as one that was taken over may. */
  say: (json) => {
    process.send?.(JSON.parse(json));
    return sleep(FOR_EVER_MS);
  },
  fail: (path) => {
    throw new AppError('SOURCE_NOT_FOUND', { path });
  },
  'fail-read-back': (code) => {
    throw new AppError('READ_BACK_FAILED', { codes: [code] });
  },
  /** Signs with a channel that is never answered as long as the process lives, as if the process flooded it. */
  'break-signing': () => {
    canSign = false;
  },
  sign: () => {
    if (!canSign) throw new AppError('SIGNATURE_FAILED', { problem: 'the signer did not answer in time' });
  },
  /** Meets an outage of the signer, of the outputs, or of neither, as long as a file is there. */
  'sign-unless': (file) => {
    if (existsSync(file)) throw new AppError('SIGNATURE_FAILED', { problem: 'it is away' });
  },
  'write-unless': (file) => {
    if (existsSync(file)) throw new AppError('OUTPUT_FAILED', { path: file, problem: 'it is away' });
  },
  'fit-unless': (file) => {
    if (existsSync(file))
      throw new AppError('OUTPUT_DISK_FULL', { path: file, neededBytes: 2, freeBytes: 1, reservedBytes: 0 });
  },
  'fail-times': async (argument) => {
    const [times, file = ''] = argument.split(' ');
    await appendFile(file, 'x');
    if (readFileSync(file).length > Number(times)) return;
    throw new AppError('READ_BACK_TIMED_OUT', { boundMs: 1 });
  },
  bug: (message) => {
    throw new TypeError(message);
  },
  taint: () => taint(),
};

runInputWorker({
  async start(_config, worker) {
    if (process.env['SCRIPTED_START'] === 'fails') throw new Error('the worker cannot start');
    taint = () => worker.taint();
    return async (work, context) => {
      if (!('path' in work.input)) throw new Error('scripts are paths');
      for (const step of work.input.path.split('; ')) {
        const [verb = '', ...argument] = step.split(' ');
        await steps[verb]?.(argument.join(' '), context, work);
      }
      return { outputPath: `/out/${work.inputIndex}`, warnings: [], manifestDigest: null };
    };
  },
});
