import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { programWords } from '#processes/program-words.ts';

/** So often it is looked whether programs get on, and what memory they hold. */
const WATCH_INTERVAL_MS = 100;

/** What programs that run together are held to. */
export interface ProgramBounds {
  /** Without progress. */
  readonly stallMs: number;
  readonly totalMs: number;
  /** Memory of one program. */
  readonly memoryBytes: number;
}

/** The packager holds about 60 MB, and some MB for each stream. */
const PROGRAM_BOUNDS: ProgramBounds = { stallMs: 120_000, totalMs: 6 * 3_600_000, memoryBytes: 1024 ** 3 };

/** The last so many characters that a program writes to its standard error are kept. */
const KEPT_ERROR_LENGTH = 8192;

/** A program to run: its path and arguments, never a line for a shell. */
export interface Program {
  /** What people call it: `The packager`. */
  readonly title: string;
  readonly path: string;
  readonly args: readonly string[];
  /** Turns how it ended into the error that is thrown; called where its exit code is not 0. */
  readonly failure: (how: ProgramEnd) => Error;
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The end of what it wrote to its standard error. */
  readonly errorText: string;
}

export interface RunOptions {
  /** Where the programs run, and put what is temporary. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** Called every 100 ms; returns a number that changes as long as there is progress. */
  readonly look: () => number;
  readonly bounds?: ProgramBounds;
  /** Open files of this process that the programs get, from the number 3 on. */
  readonly inherited?: readonly number[];
}

/**
 * Runs programs side by side that depend on each other, and returns when all of them have ended well. The first failure
 * ends the others; so do the signal, a stall, and bounds of time and memory. When it returns or throws, none is running.
 */
export async function runPrograms(programs: readonly Program[], options: RunOptions): Promise<void> {
  options.signal.throwIfAborted();
  await new ProgramGroup(programs, options, await programWords()).run();
}

class ProgramGroup {
  readonly #programs: readonly Program[];
  readonly #options: RunOptions;
  readonly #bounds: ProgramBounds;
  readonly #words: readonly string[];
  readonly #running = new Map<ChildProcess, Program>();
  readonly #startedAtMs = performance.now();
  #progressedAtMs = performance.now();
  #progress = 0;
  #failure: { readonly error: unknown } | null = null;

  constructor(programs: readonly Program[], options: RunOptions, words: readonly string[]) {
    this.#programs = programs;
    this.#options = options;
    this.#bounds = options.bounds ?? PROGRAM_BOUNDS;
    this.#words = words;
  }

  async run(): Promise<void> {
    const { signal } = this.#options;
    const abort = () => this.#fail(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    const watch = setInterval(() => this.#watch(), WATCH_INTERVAL_MS);
    try {
      await Promise.all(this.#programs.map((program) => this.#start(program)));
    } finally {
      clearInterval(watch);
      signal.removeEventListener('abort', abort);
    }
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Settles when the program has ended. Never rejects. */
  async #start(program: Program): Promise<void> {
    if (this.#failure !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const [path, ...args] = [...this.#words, program.path, ...program.args] as [string, ...string[]];
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
      errorText = (errorText + text).slice(-KEPT_ERROR_LENGTH);
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

  #watch(): void {
    const now = performance.now();
    const progress = this.#options.look();
    if (progress !== this.#progress) {
      this.#progress = progress;
      this.#progressedAtMs = now;
    }
    const program = this.#running.values().next().value?.title ?? 'The packager';
    const { stallMs, totalMs, memoryBytes } = this.#bounds;
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

/** Nothing of the service's environment is handed on but where programs are found. */
function environment(folder: string): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LANG: 'C.UTF-8', HOME: folder, TMPDIR: folder };
}

/** Ends a program and whatever it started: each has a process group of its own. */
function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended by itself in the meantime.
  }
}

/** The memory that a process holds, in bytes; 0 where the system does not tell. Linux counts in pages of 4 KiB. */
function residentBytes(pid: number | undefined): number {
  try {
    return Number(readFileSync(`/proc/${pid}/statm`, 'latin1').split(' ')[1]) * 4096;
  } catch {
    // The process is gone, or this is not Linux.
    return 0;
  }
}
