import { availableParallelism } from 'node:os';
import { AppError } from '#errors/app-error.ts';
import { readInWasm } from './reader-threads.ts';
import { readReport, type SdkAsset } from './sdk/sdk.ts';
import { sdkProblem } from './sdk/sdk-problem.ts';
import { type ManifestReport, problemsIn, VALID_ASSET } from './validation-report.ts';

export type { SdkAsset };

/** A reading of an asset by the official reader: its report, that there is no manifest, or why it cannot read it. */
export type AssetReading = ManifestReport | 'none' | { readonly problem: string };

/** The native SDK's words for an asset without a manifest. */
const NO_MANIFEST = /JumbfNotFound|no JUMBF data found/i;

/**
 * Reads an asset of any origin and state with the official reader, by trust anchors in PEM (null for none). Throws only when the signal
 * is aborted.
 */
export async function assetReadingOf(
  asset: SdkAsset,
  anchors: string | null,
  signal: AbortSignal,
): Promise<AssetReading> {
  try {
    return (await readReport(asset, anchors, signal)) ?? 'none';
  } catch (error) {
    signal.throwIfAborted();
    const problem = sdkProblem(error);
    return NO_MANIFEST.test(problem) ? 'none' : { problem };
  }
}

/**
 * Reads a finished output back with the official reader, with its sidecar where it has one. Throws `READ_BACK_FAILED` unless signature,
 * assertions and hard binding of its active manifest are valid; it need not be trusted. Findings about ingredients do not count. Throws
 * `IDENTITY_EXPIRED` where the certificate has expired since it was signed.
 */
export async function checkOutput(asset: SdkAsset, signal: AbortSignal): Promise<void> {
  const report = await readReport(asset, null, signal).catch((cause: unknown) => {
    signal.throwIfAborted();
    throw new AppError('READ_BACK_FAILED', { codes: [sdkProblem(cause)] }, { cause });
  });
  const codes = problemsInOutput(report);
  if (codes.length > 0) throw new AppError('READ_BACK_FAILED', { codes });
}

export type OutputChecker = typeof checkOutput;

/**
 * Returns the status codes for which an output is refused. Throws `IDENTITY_EXPIRED` where it was read back after the end of the
 * certificate that it had been signed with before: the output is not at fault.
 */
function problemsInOutput(report: ManifestReport | null): string[] {
  const problems = problemsIn(report?.validation_results, VALID_ASSET);
  if (!problems.includes('signingCredential.expired')) return problems;
  throw new AppError('IDENTITY_EXPIRED', { notAfter: new Date().toISOString() });
}

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
      const problems = 'problem' in answer ? [answer.problem] : problemsInOutput(answer.report);
      if (problems.length > 0) throw new AppError('OUTPUT_PART_INVALID', { file: name, problem: problems.join(', ') });
    },
    read: async (init, fragment, options, signal) => {
      const answer = await readInWasm({ asset: { init, fragment }, ...options }, signal);
      return 'problem' in answer ? answer : answer.report;
    },
  };
}
