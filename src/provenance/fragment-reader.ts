import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { raceAbort } from '#concurrency/race-abort.ts';
import { AppError } from '#errors/app-error.ts';
import type { FragmentMessage, FragmentReport } from './reading/reader-thread.ts';
import { requireUnexpiredOutput } from './require-unexpired-output.ts';
import { type ManifestReport, problemsIn, VALID_ASSET, type ValidationResults } from './validation-report.ts';

/** Validates single fragments, each with its init segment, with the official reader. */
export interface FragmentReader {
  /** The number of calls that may run concurrently. */
  readonly maxConcurrency: number;
  /**
   * Reads a finished fragment back. Throws `OUTPUT_PART_INVALID` with `name` unless it is valid under the manifest of its
   * init segment, which need not be trusted; `IDENTITY_EXPIRED` where only the certificate has expired since.
   */
  readBack(init: Uint8Array, fragment: Uint8Array, name: string, signal: AbortSignal): Promise<void>;
  /**
   * Returns validation results for an ingredient, with trust anchors in PEM (null for none); null where the reader cannot
   * read the init segment and the fragment.
   */
  validationResults(
    init: Uint8Array,
    fragment: Uint8Array,
    anchors: string | null,
    signal: AbortSignal,
  ): Promise<ValidationResults | null>;
  /** Reads an init segment and a fragment, whatever their state. */
  read(
    init: Uint8Array,
    fragment: Uint8Array,
    options: FragmentReadingOptions,
    signal: AbortSignal,
  ): Promise<FragmentReading>;
}

/** The extent of a reading: the results of the validation or the full report; and trust anchors in PEM, null for none. */
export type FragmentReadingOptions = Pick<FragmentMessage, 'detail' | 'anchors'>;

/** A report, without the manifests where only results were asked for; or why the reader cannot read the parts. */
export type FragmentReading = ManifestReport | { readonly problem: string };

/** Limits the threads, of which there is one per core. Each takes some 40 MB. */
const MAX_THREADS = 4;
/** Terminates a thread that has been idle for this time, which is longer than hashing the next rendition takes, as a rule. */
const IDLE_TIMEOUT_MS = 5_000;
/** Limits the young generation of a thread's heap: it holds one fragment, and objects that live shortly. */
const THREAD_YOUNG_GENERATION_MB = 4;
/** Has the extension of this module: in a build, both are JavaScript. */
const THREAD_URL = new URL(`./reading/reader-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * Creates a reader of single fragments. Only the WASM build of the official reader, which players in browsers use, can read
 * those. It runs on threads of its own, which are started on demand.
 */
export function createFragmentReader(): FragmentReader {
  const threads = new ReaderThreads(Math.min(availableParallelism(), MAX_THREADS));
  return {
    maxConcurrency: threads.maxThreads,
    async readBack(init, fragment, name, signal) {
      const findings = await threads.read(init, fragment, signal);
      const problems =
        'problem' in findings ? [findings.problem] : problemsIn(findings.report.validation_results, VALID_ASSET);
      requireUnexpiredOutput(problems);
      if (problems.length > 0) throw new AppError('OUTPUT_PART_INVALID', { file: name, problem: problems.join(', ') });
    },
    async validationResults(init, fragment, anchors, signal) {
      const findings = await threads.read(init, fragment, signal, { detail: 'results', anchors });
      // A publication that the reader cannot read is attached as an ingredient without results.
      return 'problem' in findings ? null : JSON.parse(JSON.stringify(findings.report.validation_results ?? null));
    },
    read: async (init, fragment, options, signal) => {
      const answer = await threads.read(init, fragment, signal, options);
      return 'problem' in answer ? answer : answer.report;
    },
  };
}

/** A pool of threads that read fragments. */
class ReaderThreads {
  readonly maxThreads: number;
  readonly #idle: ReaderThread[] = [];
  #runningCount = 0;

  constructor(maxThreads: number) {
    this.maxThreads = maxThreads;
  }

  async read(
    init: Uint8Array,
    fragment: Uint8Array,
    signal: AbortSignal,
    options: FragmentReadingOptions = { detail: 'results', anchors: null },
  ): Promise<FragmentReport> {
    signal.throwIfAborted();
    assert(this.#runningCount < this.maxThreads, 'no more fragments are read at once than maxConcurrency');
    this.#runningCount += 1;
    try {
      return await this.#readOnThread(this.#takeThread(), { init, fragment, ...options }, signal);
    } finally {
      this.#runningCount -= 1;
    }
  }

  /** Reads on a thread, which is terminated where the call is aborted or fails. */
  async #readOnThread(thread: ReaderThread, message: FragmentMessage, signal: AbortSignal): Promise<FragmentReport> {
    try {
      const findings = await raceAbort(thread.read(message), signal);
      this.#idle.push(thread);
      thread.terminateWhenIdle(() => this.#idle.splice(this.#idle.indexOf(thread), 1));
      return findings;
    } catch (error) {
      thread.terminate();
      throw error;
    }
  }

  /** Takes the idle thread that was used last, or starts one. */
  #takeThread(): ReaderThread {
    return this.#idle.pop() ?? new ReaderThread();
  }
}

/** A thread that reads one fragment at a time. */
class ReaderThread {
  readonly #worker = new Worker(THREAD_URL, {
    name: 'fragment-reader',
    resourceLimits: { maxYoungGenerationSizeMb: THREAD_YOUNG_GENERATION_MB },
  });
  #answer: PromiseWithResolvers<FragmentReport> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.#worker.on('message', (findings: FragmentReport) => this.#answer?.resolve(findings));
    this.#worker.on('error', (error) => this.#answer?.reject(error));
    this.#worker.on('exit', () => this.#answer?.reject(new Error('the thread that reads fragments has exited')));
  }

  read(message: FragmentMessage): Promise<FragmentReport> {
    clearTimeout(this.#timer);
    this.#worker.ref();
    this.#answer = Promise.withResolvers();
    this.#worker.postMessage(message);
    return this.#answer.promise;
  }

  /** Terminates the thread unless it is used again soon. Until then it does not keep the process alive. */
  terminateWhenIdle(onTerminate: () => void): void {
    this.#worker.unref();
    this.#timer = setTimeout(() => {
      onTerminate();
      this.terminate();
    }, IDLE_TIMEOUT_MS);
    this.#timer.unref();
  }

  terminate(): void {
    clearTimeout(this.#timer);
    void this.#worker.terminate();
  }
}
