import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import type { ValidationResults } from '../sdk.ts';
import { untilAborted } from '../until-aborted.ts';
import { namedProblems, problemsOf } from './output-reader.ts';
import type { FragmentFindings } from './read-fragment.ts';

/** Reads single fragments, each with its init segment. */
export interface FragmentReader {
  /** So many fragments may be read at once. */
  readonly atOnce: number;
  /**
   * Rejects with `OUTPUT_PART_INVALID`, which tells `name`, unless the fragment is valid under the manifest of its init
   * segment. As for files, only the missing trust in the signing credential is tolerated.
   */
  readBack(init: Uint8Array, fragment: Uint8Array, name: string, signal: AbortSignal): Promise<void>;
  /** The validation results that an ingredient carries; null where the reader cannot read the two at all. */
  validationResults(init: Uint8Array, fragment: Uint8Array, signal: AbortSignal): Promise<ValidationResults | null>;
}

/** Threads that read fragments: as many as there are cores, up to these. Each takes some 40 MB. */
const MAX_THREADS = 4;
/** A thread that has had nothing to do for so long ends. */
const IDLE_MS = 1_000;
/** What a thread reads is the size of a fragment; what else it makes is short-lived. */
const THREAD_YOUNG_MB = 4;
/** Also right in a build, where this module and the thread's are JavaScript. */
const THREAD_URL = new URL(`./fragment-reader-thread${extname(import.meta.url)}`, import.meta.url);

/**
 * Makes a reader of single fragments. Only the WASM build of the official reader can read those: it is what players in
 * browsers use. It runs on threads of its own, which are started when they are needed.
 */
export function createFragmentReader(): FragmentReader {
  const threads = new ReaderThreads(Math.min(availableParallelism(), MAX_THREADS));
  return {
    atOnce: threads.maxThreads,
    async readBack(init, fragment, name, signal) {
      const problems = problemsIn(await threads.read(init, fragment, signal));
      if (problems.length > 0) throw new AppError('OUTPUT_PART_INVALID', { file: name, problem: problems.join(', ') });
    },
    async validationResults(init, fragment, signal) {
      const findings = await threads.read(init, fragment, signal);
      // A publication that the reader cannot read is attached as an ingredient without results.
      return 'problem' in findings ? null : JSON.parse(JSON.stringify(findings.results));
    },
  };
}

function problemsIn(findings: FragmentFindings): string[] {
  if ('problem' in findings) return [findings.problem];
  if (findings.results === null) return namedProblems(problemsOf(null));
  return namedProblems(problemsOf({ manifests: {}, validation_results: findings.results }));
}

class ReaderThreads {
  readonly maxThreads: number;
  readonly #idle: ReaderThread[] = [];
  #reading = 0;

  constructor(maxThreads: number) {
    this.maxThreads = maxThreads;
  }

  async read(init: Uint8Array, fragment: Uint8Array, signal: AbortSignal): Promise<FragmentFindings> {
    signal.throwIfAborted();
    assert(this.#reading < this.maxThreads, 'no more are read at once than may be');
    this.#reading += 1;
    try {
      return await this.#readOn(this.#takeThread(), init, fragment, signal);
    } finally {
      this.#reading -= 1;
    }
  }

  /** A thread that was given up midway, or has failed, ends with what it reads. */
  async #readOn(
    thread: ReaderThread,
    init: Uint8Array,
    fragment: Uint8Array,
    signal: AbortSignal,
  ): Promise<FragmentFindings> {
    try {
      const findings = await untilAborted(thread.read(init, fragment), signal);
      this.#idle.push(thread);
      thread.endLater(() => this.#idle.splice(this.#idle.indexOf(thread), 1));
      return findings;
    } catch (error) {
      thread.end();
      throw error;
    }
  }

  /** The thread that was used last, if any is idle. */
  #takeThread(): ReaderThread {
    return this.#idle.pop() ?? new ReaderThread();
  }
}

/** A thread that reads one fragment at a time. */
class ReaderThread {
  readonly #worker = new Worker(THREAD_URL, {
    name: 'fragment-reader',
    resourceLimits: { maxYoungGenerationSizeMb: THREAD_YOUNG_MB },
  });
  #answer: PromiseWithResolvers<FragmentFindings> | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor() {
    this.#worker.on('message', (findings: FragmentFindings) => this.#answer?.resolve(findings));
    this.#worker.on('error', (error) => this.#answer?.reject(error));
    this.#worker.on('exit', () => this.#answer?.reject(new Error('the thread that reads fragments has ended')));
  }

  read(init: Uint8Array, fragment: Uint8Array): Promise<FragmentFindings> {
    clearTimeout(this.#timer);
    this.#worker.ref();
    this.#answer = Promise.withResolvers();
    this.#worker.postMessage({ init, fragment } satisfies FragmentQuestion);
    return this.#answer.promise;
  }

  /** Ends the thread unless it is asked again soon. It does not keep the process from ending. */
  endLater(ending: () => void): void {
    this.#worker.unref();
    this.#timer = setTimeout(() => {
      ending();
      this.end();
    }, IDLE_MS);
    this.#timer.unref();
  }

  end(): void {
    clearTimeout(this.#timer);
    void this.#worker.terminate();
  }
}

/** What a thread is asked. */
export interface FragmentQuestion {
  readonly init: Uint8Array;
  readonly fragment: Uint8Array;
}
