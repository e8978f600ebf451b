import type { SingleBar } from 'cli-progress';

/** The part of a command that is done. */
export interface Progress {
  readonly inputsDone: number;
  readonly inputsTotal: number;
  readonly bytesDone: number;
}

/** Standard output and standard error of a command. */
export class Terminal {
  readonly #isJson: boolean;
  readonly #isQuiet: boolean;
  readonly #startedAtMs = performance.now();
  #bar: SingleBar | null = null;

  constructor({ json = false, quiet = false }: { readonly json?: boolean; readonly quiet?: boolean } = {}) {
    this.#isJson = json;
    this.#isQuiet = quiet;
  }

  /** Writes a result: `entry` as a line of JSON to standard output with `--json`, else `text`, that of a failure to standard error. */
  result(entry: object, text: string, isFailure = false): void {
    if (this.#isJson) process.stdout.write(`${JSON.stringify(entry)}\n`);
    else if (isFailure) this.problem(text);
    else if (!this.#isQuiet) this.#between(() => process.stdout.write(`${withoutControls(text)}\n`));
  }

  /** Writes a line for people to standard error; with `--quiet`, nothing. */
  note(text: string): void {
    if (!this.#isQuiet) this.problem(text);
  }

  /** Writes a problem to standard error. */
  problem(text: string): void {
    this.#between(() => process.stderr.write(`${withoutControls(text)}\n`));
  }

  /** Shows a bar on standard error where that is a terminal; with `--quiet`, nothing. */
  async startProgress(inputsTotal: number): Promise<void> {
    if (this.#isQuiet || !process.stderr.isTTY) return;
    const { default: progress } = await import('cli-progress');
    const format = '{bar} {percentage}% | {inputs} | {rate} | {left}';
    const options = { format, hideCursor: true, clearOnComplete: true, stream: process.stderr, gracefulExit: false };
    this.#bar = new progress.SingleBar(options, progress.Presets.shades_classic);
    this.#bar.start(inputsTotal, 0, { inputs: `0/${inputsTotal}`, rate: '', left: '' });
  }

  progress({ inputsDone, inputsTotal, bytesDone }: Progress): void {
    if (this.#bar === null) return;
    const seconds = (performance.now() - this.#startedAtMs) / 1000;
    const done = Math.min(inputsDone, inputsTotal);
    this.#bar.setTotal(inputsTotal);
    this.#bar.update(done, {
      inputs: `${Math.floor(done)}/${inputsTotal}`,
      rate: `${(bytesDone / 1e6 / seconds).toFixed(1)} MB/s`,
      left: done === 0 ? '' : `${Math.ceil((seconds * (inputsTotal - done)) / done)} s left`,
    });
  }

  endProgress(): void {
    this.#bar?.stop();
    this.#bar = null;
  }

  /** Writes a line above the bar, which is drawn again with the next progress. */
  #between(write: () => void): void {
    if (this.#bar !== null) process.stderr.write('\r\x1b[K');
    write();
  }
}

/** Names of files and messages come from others, and must not move the cursor of a terminal. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, '\ufffd');
}

/** Calls a listener where output cannot be written: `isClosed` where whoever read it has gone, as `head` does. */
export function onOutputError(listener: (error: NodeJS.ErrnoException, isClosed: boolean) => void): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => listener(error, error.code === 'EPIPE'));
  }
}

/** Ends a command whose results nobody reads any more quietly, and one whose results cannot be written with the problem. */
export function endOnOutputError(): void {
  onOutputError((error, isClosed) => {
    if (isClosed) process.exit();
    throw error;
  });
}
