import { availableParallelism } from 'node:os';
import { AppError } from '#errors/app-error.ts';
import { readInWasm } from './reader-threads.ts';
import { requireUnexpiredOutput } from './require-unexpired-output.ts';
import { type ManifestReport, problemsIn, VALID_ASSET } from './validation-report.ts';

/** Validates single fragments, each with its init segment, with the official reader. */
export interface FragmentReader {
  /** The number of calls that may run concurrently. */
  readonly maxConcurrency: number;
  /**
   * Reads a finished fragment back. Throws `OUTPUT_PART_INVALID` with `name` unless it is valid under the manifest of its
   * init segment, which need not be trusted; `IDENTITY_EXPIRED` where only the certificate has expired since.
   */
  readBack(init: Uint8Array, fragment: Uint8Array, name: string, signal: AbortSignal): Promise<void>;
  /** Reads an init segment and a fragment, whatever their state. */
  read(
    init: Uint8Array,
    fragment: Uint8Array,
    options: FragmentReadingOptions,
    signal: AbortSignal,
  ): Promise<FragmentReading>;
}

/** The extent of a reading: the results of the validation or the full report; and trust anchors in PEM, null for none. */
interface FragmentReadingOptions {
  readonly answer: 'results' | 'report';
  readonly anchors: string | null;
}

/** A report, without the manifests where only results were asked for; or why the reader cannot read the parts. */
export type FragmentReading = ManifestReport | { readonly problem: string };

/** Limits the threads, of which there is one per core. */
const MAX_THREADS = 4;

/** Creates a reader of single fragments. Only the WASM build of the official reader can read those. */
export function createFragmentReader(): FragmentReader {
  return {
    maxConcurrency: Math.min(availableParallelism(), MAX_THREADS),
    async readBack(init, fragment, name, signal) {
      const answer = await readInWasm({ asset: { init, fragment }, answer: 'results', anchors: null }, signal);
      const problems =
        'problem' in answer ? [answer.problem] : problemsIn(answer.report.validation_results, VALID_ASSET);
      requireUnexpiredOutput(problems);
      if (problems.length > 0) throw new AppError('OUTPUT_PART_INVALID', { file: name, problem: problems.join(', ') });
    },
    read: async (init, fragment, options, signal) => {
      const answer = await readInWasm({ asset: { init, fragment }, ...options }, signal);
      return 'problem' in answer ? answer : answer.report;
    },
  };
}
