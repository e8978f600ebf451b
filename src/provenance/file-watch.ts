import { stat } from 'node:fs/promises';
import { problemOf } from '#errors/system-problem.ts';

/** Polling sees changes that watches miss: files renamed into place, links that move, network file systems. */
const POLL_INTERVAL_MS = 2_000;

interface FileWatchOptions {
  /** Returns a text that differs when a file was changed, replaced, added or removed. */
  readonly stateOf: () => Promise<string>;
  /** The state of the files that are in use already. */
  readonly usedState: string;
  /** Takes the files over. Returns false where that is to be tried again; throws where they cannot be used. */
  readonly reload: () => Promise<boolean>;
  /** Called once for each change that cannot be used, after `maxAttempts`. */
  readonly refused: (error: Error) => void;
  readonly maxAttempts: number;
  /** Time between two looks at the files, in milliseconds. */
  readonly pollIntervalMs?: number | undefined;
}

/**
 * Watches files, and has them taken over once two looks in a row find the same state: a file that is being written is not
 * read. After a change that cannot be used they are read again at each look, and after `maxAttempts` looks less often.
 */
export class FileWatch {
  readonly #options: FileWatchOptions;
  readonly #polls: NodeJS.Timeout;
  #usedState: string;
  #seenState: string;
  #attempts = 0;
  #isPolling = false;

  constructor(options: FileWatchOptions) {
    this.#options = options;
    this.#usedState = options.usedState;
    this.#seenState = options.usedState;
    this.#polls = setInterval(() => void this.#poll(), options.pollIntervalMs ?? POLL_INTERVAL_MS).unref();
  }

  /** The state of the files when they were last taken over. */
  get usedState(): string {
    return this.#usedState;
  }

  close(): void {
    clearInterval(this.#polls);
  }

  async #poll(): Promise<void> {
    if (this.#isPolling) return;
    this.#isPolling = true;
    try {
      const state = await this.#options.stateOf();
      if (state !== this.#seenState) this.#attempts = 0;
      else if (state !== this.#usedState) await this.#reload(state);
      this.#seenState = state;
    } finally {
      this.#isPolling = false;
    }
  }

  async #reload(state: string): Promise<void> {
    const { reload, refused, maxAttempts } = this.#options;
    this.#attempts += 1;
    if (this.#attempts > maxAttempts && this.#attempts % maxAttempts !== 0) return;
    try {
      if (await reload()) this.#usedState = state;
      else this.#attempts -= 1;
    } catch (error) {
      // An error that is none of the catalogue, such as of a process that could not be started, may pass as well.
      if (this.#attempts === maxAttempts) refused(error as Error);
    }
  }
}

/** Returns a text that differs when a file, or the one that a link at its path leads to, was changed, replaced or removed. */
export async function stateOfFile(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return [file, dev, ino, size, mtimeNs, ctimeNs].join();
  } catch (error) {
    return `${file}: ${problemOf(error)}`;
  }
}
