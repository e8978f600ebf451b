import { EXIT } from './exit-codes.ts';
import { onClosedPipe } from './terminal.ts';

/** Tells a command to stop in order: on a signal, or where nobody reads its output any more. The second signal ends it at once. */
export class Interruption {
  readonly #abort = new AbortController();
  /** True where a signal came. */
  isSignalled = false;

  constructor() {
    onClosedPipe(() => this.#abort.abort());
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
