import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { programPrefix } from '#processes/protections.ts';

/** Interval at which progress and memory are checked. */
const POLL_INTERVAL_MS = 100;

/** Limits of programs that run together. */
interface ProgramLimits {
  /** Time without progress. */
  readonly stallMs: number;
  readonly totalMs: number;
  /** Memory of one program. */
  readonly memoryBytes: number;
}

/** Default limits. The packager takes about 60 MB, and some MB for each stream. */
const PROGRAM_LIMITS: ProgramLimits = { stallMs: 120_000, totalMs: 6 * 3_600_000, memoryBytes: 1024 ** 3 };

/** Characters that are kept of the end of a program's standard error. */
const MAX_ERROR_TEXT_LENGTH = 8192;

/** A program to run, by path and arguments, never through a shell. */
export interface Program {
  /** Name in messages, at the start of a sentence: `The packager`. */
  readonly title: string;
  readonly path: string;
  readonly args: readonly string[];
  /** Returns the error to throw for an exit code other than 0. */
  readonly failure: (exit: ProgramExit) => Error;
}

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** End of its standard error. */
  readonly errorText: string;
}

interface RunOptions {
  /** Working directory of the programs, also for their temporary files. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** Called every 100 ms. Returns a number that changes as long as there is progress. */
  readonly poll: () => number;
  readonly limits?: ProgramLimits;
  /** Descriptors of this process that the programs inherit, from number 3 on. */
  readonly inherited?: readonly number[];
}

/**
 * Runs programs concurrently that depend on each other, and returns when all have exited with 0. Kills all of them at the
 * first failure, when the signal is aborted, without progress, or past a limit of time or memory. When it returns or
 * throws, none is running. Throws the program's `failure`, the signal's reason, `PROGRAM_NOT_STARTED`, `PROGRAM_STALLED`,
 * `PROGRAM_TOO_SLOW` or `PROGRAM_TOO_LARGE`.
 */
export async function runPrograms(programs: readonly Program[], options: RunOptions): Promise<void> {
  const prefix = await programPrefix();
  // Not before: nothing listens to an abort while the prefix is probed.
  options.signal.throwIfAborted();
  await new ProgramGroup(programs, options, prefix).run();
}

/** Signals that people, init systems and hosts that shut down send to all processes; never caused by a file's content. */
export const TERMINATION_SIGNALS: ReadonlySet<NodeJS.Signals | null> = new Set([
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
] as const);

/** Describes how a program exited, as the end of a sentence. */
export function describeExit({ code, signal }: ProgramExit): string {
  return signal === null
    ? `the program ended with the exit code ${code}`
    : `the program was ended by the signal ${signal}`;
}

class ProgramGroup {
  readonly #programs: readonly Program[];
  readonly #options: RunOptions;
  readonly #limits: ProgramLimits;
  readonly #prefix: readonly string[];
  readonly #running = new Map<ChildProcess, Program>();
  readonly #startedAtMs = performance.now();
  #progressedAtMs = performance.now();
  #progress = 0;
  #failure: { readonly error: unknown } | null = null;

  constructor(programs: readonly Program[], options: RunOptions, prefix: readonly string[]) {
    this.#programs = programs;
    this.#options = options;
    this.#limits = options.limits ?? PROGRAM_LIMITS;
    this.#prefix = prefix;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    const abort = () => this.#fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    const timer = setInterval(() => this.#poll(), POLL_INTERVAL_MS);
    try {
      await Promise.all(this.#programs.map((program) => this.#start(program)));
    } finally {
      clearInterval(timer);
      signal.removeEventListener('abort', abort);
    }
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Starts a program and resolves when it has exited. Never rejects. */
  async #start(program: Program): Promise<void> {
    if (this.#failure !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const [path, ...args] = [...this.#prefix, program.path, ...program.args] as [string, ...string[]];
    const { folder, inherited = [] } = this.#options;
    const child = spawn(path, args, {
      cwd: folder,
      env: environment(folder),
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe', ...inherited],
    });
    this.#running.set(child, program);
    let errorText = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      errorText = (errorText + text).slice(-MAX_ERROR_TEXT_LENGTH);
    });
    child.on('error', (cause) => {
      const problem = isSystemError(cause) ? problemOf(cause) : cause.message;
      this.#fail(new AppError('PROGRAM_NOT_STARTED', { program: program.title, problem }, { cause }));
      if (child.pid === undefined) resolve();
    });
    child.on('close', (code, signal) => {
      this.#running.delete(child);
      if (code !== 0) this.#fail(program.failure({ code, signal, errorText }));
      resolve();
    });
    await promise;
  }

  #fail(error: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = { error };
    for (const child of this.#running.keys()) killGroup(child);
  }

  /** Never throws: it is called by a timer. */
  #poll(): void {
    try {
      this.#check(this.#options.poll());
    } catch (error) {
      this.#fail(error);
    }
  }

  #check(progress: number): void {
    const now = performance.now();
    if (progress !== this.#progress) {
      this.#progress = progress;
      this.#progressedAtMs = now;
    }
    const program = this.#running.values().next().value?.title ?? 'The packager';
    const { stallMs, totalMs, memoryBytes } = this.#limits;
    if (now - this.#progressedAtMs > stallMs) {
      this.#fail(new AppError('PROGRAM_STALLED', { program, seconds: stallMs / 1000 }));
    } else if (now - this.#startedAtMs > totalMs) {
      this.#fail(new AppError('PROGRAM_TOO_SLOW', { program, seconds: totalMs / 1000 }));
    }
    for (const [child, { title }] of this.#running) {
      if (residentBytes(child.pid) <= memoryBytes) continue;
      this.#fail(new AppError('PROGRAM_TOO_LARGE', { program: title, limitBytes: memoryBytes }));
    }
  }
}

/** Returns the environment of the programs: of the service's own they get `PATH` only. */
function environment(folder: string): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: folder, TMPDIR: folder };
}

/** Kills a program and its children: each program leads a process group. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has exited in the meantime.
  }
}

/** Returns the resident memory of a process in bytes, 0 where the system does not tell. Linux counts pages of 4 KiB. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096;
  } catch {
    // The process is gone, or this is not Linux.
    return 0;
  }
}
