import { AppError } from '#errors/app-error.ts';
import type { ReadableAsset } from './asset-reader.ts';
import { readDetachedReport, readReport } from './sdk/sdk.ts';
import { sdkProblem } from './sdk/sdk-problem.ts';
import { type ManifestReport, problemsIn, VALID_ASSET } from './validation-report.ts';

/** Validates finished outputs with the official reader. */
export interface ManifestReader {
  /**
   * Reads a file back, with its sidecar where it has one. Throws `READ_BACK_FAILED` unless signature, assertions and hard binding of its active manifest are
   * valid; it need not be trusted. Findings about ingredients do not count.
   */
  readBack(asset: ReadableAsset, signal: AbortSignal): Promise<void>;
}

/** Creates a reader of files, which uses the native SDK. */
export function createManifestReader(): ManifestReader {
  return {
    async readBack(asset, signal) {
      const report = await readFileReport(asset, signal);
      const codes = problemsIn(report?.validation_results, VALID_ASSET);
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
