import { AppError } from '#errors/app-error.ts';
import { requireUnexpiredOutput } from './require-unexpired-output.ts';
import { readDetachedReport, readReport } from './sdk/sdk.ts';
import { sdkProblem } from './sdk/sdk-problem.ts';
import { type ManifestReport, problemsIn, VALID_ASSET } from './validation-report.ts';

/** A file on this host, with its manifest store where that lies in a file of its own. */
export interface ReadableAsset {
  readonly path: string;
  readonly mediaType: string;
  readonly detachedStore?: Uint8Array;
  /** Trust anchors in PEM. */
  readonly anchors?: string;
}

/** A reading of an asset by the official reader: its report, that there is no manifest, or why it cannot read it. */
export type AssetReading = ManifestReport | 'none' | { readonly problem: string };

/** The native SDK's words for an asset without a manifest. */
const NO_MANIFEST = /JumbfNotFound|no JUMBF data found/i;

/** Reads an asset of any origin and state with the official reader. Throws only when the signal is aborted. */
export async function assetReadingOf(
  { detachedStore, anchors, ...asset }: ReadableAsset,
  signal: AbortSignal,
): Promise<AssetReading> {
  try {
    if (detachedStore !== undefined) return await readDetachedReport(detachedStore, asset, signal, anchors);
    return (await readReport(asset, signal, anchors)) ?? 'none';
  } catch (error) {
    signal.throwIfAborted();
    const problem = sdkProblem(error);
    return NO_MANIFEST.test(problem) ? 'none' : { problem };
  }
}

/** Validates finished outputs with the official reader. */
export interface OutputChecker {
  /**
   * Reads a file back, with its sidecar where it has one. Throws `READ_BACK_FAILED` unless signature, assertions and hard
   * binding of its active manifest are valid; it need not be trusted. Findings about ingredients do not count. Throws
   * `IDENTITY_EXPIRED` where the certificate has expired since it was signed.
   */
  readBack(asset: ReadableAsset, signal: AbortSignal): Promise<void>;
}

/** Creates a checker of files, which uses the native SDK. */
export function createOutputChecker(): OutputChecker {
  return {
    async readBack(asset, signal) {
      const report = await readFileReport(asset, signal);
      const codes = problemsIn(report?.validation_results, VALID_ASSET);
      requireUnexpiredOutput(codes);
      if (codes.length > 0) throw new AppError('READ_BACK_FAILED', { codes });
    },
  };
}

async function readFileReport(
  { detachedStore, ...asset }: ReadableAsset,
  signal: AbortSignal,
): Promise<ManifestReport | null> {
  try {
    return await (detachedStore === undefined
      ? readReport(asset, signal)
      : readDetachedReport(detachedStore, asset, signal));
  } catch (cause) {
    signal.throwIfAborted();
    throw new AppError('READ_BACK_FAILED', { codes: [sdkProblem(cause)] }, { cause });
  }
}
