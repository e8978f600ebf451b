/** Standard output and standard error of a command. */
export class Terminal {
  readonly #json: boolean;
  readonly #quiet: boolean;

  constructor({ json = false, quiet = false }: { readonly json?: boolean; readonly quiet?: boolean } = {}) {
    this.#json = json;
    this.#quiet = quiet;
  }

  /** Writes a result to standard output: `entry` as a line of JSON with `--json`, else `text`. */
  result(entry: object, text: string): void {
    process.stdout.write(`${this.#json ? JSON.stringify(entry) : withoutControls(text)}\n`);
  }

  /** Writes a line for people to standard error; with `--quiet`, nothing. */
  note(text: string): void {
    if (!this.#quiet) process.stderr.write(`${withoutControls(text)}\n`);
  }

  /** Writes a problem to standard error. */
  problem(text: string): void {
    process.stderr.write(`${withoutControls(text)}\n`);
  }
}

/** Names of files and messages come from others, and must not move the cursor of a terminal. */
function withoutControls(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, '\ufffd');
}

/** Ends the process quietly where whoever reads its output has gone, as `head` does. */
export function endOnClosedPipe(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      process.exit();
    });
  }
}
