import { problemOf } from '#errors/system-problem.ts';
import { EXIT } from './exit-codes.ts';
import { onOutputError } from './terminal.ts';

/** Tells a command to stop in order: on a signal, or where nobody reads its output any more. The second signal ends it at once. */
export class Interruption {
  readonly #abort = new AbortController();
  /** True where a signal came. */
  isSignalled = false;
  /** The problem of the output where it could not be written. */
  outputProblem: string | null = null;

  constructor() {
    onOutputError((error, isClosed) => {
      if (!isClosed) this.outputProblem = problemOf(error);
      this.#abort.abort();
    });
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(name, () => {
        if (this.isSignalled) process.exit(EXIT.interrupted);
        this.isSignalled = true;
        this.#abort.abort();
      });
    }
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}
