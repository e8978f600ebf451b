import { AppError } from '#errors/app-error.ts';
import type { OutputReader } from '../authoring/manifest-author.ts';
import { type Findings, type ManifestReport, readReport } from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';

/** A certificate is only on trust lists if its owner put it there: that is no fault of the output. */
const TOLERATED = 'signingCredential.untrusted';
/** The claim's signature was checked, and the asset's bytes were found as they were signed. */
const REQUIRED = [['claimSignature.validated'], ['assertion.dataHash.match', 'assertion.bmffHash.match']] as const;
const MAX_NAMED_CODES = 10;

/** Reads outputs with the official reader, which validates signature, assertions and hard binding. */
export function createOutputReader(): OutputReader {
  return {
    async readBack(path, mediaType, signal) {
      const codes = problemsOf(await read(path, mediaType, signal));
      if (codes.length > 0) throw new AppError('READ_BACK_FAILED', { codes: namedProblems(codes) });
    },
  };
}

async function read(path: string, mediaType: string, signal: AbortSignal): Promise<ManifestReport | null> {
  try {
    return await readReport({ path, mediaType }, signal);
  } catch (cause) {
    signal.throwIfAborted();
    throw new AppError('READ_BACK_FAILED', { codes: [sdkProblem(cause)] }, { cause });
  }
}

/**
 * What is wrong with the active manifest; what is wrong with an ingredient was wrong before. Silence is no proof: the
 * checks that matter must have succeeded.
 */
export function problemsOf(report: ManifestReport | null): string[] {
  const findings = report?.validation_results?.activeManifest;
  if (findings === undefined) return ['no manifest was found'];
  const failures = findings.failure.map(({ code }) => code).filter((code) => code !== TOLERATED);
  const missing = REQUIRED.filter((codes) => !codes.some((code) => succeeded(findings, code)));
  return [...new Set([...failures, ...missing.map((codes) => `without ${codes.join(' or ')}`)])];
}

/** As many problems as an error names. */
export function namedProblems(codes: readonly string[]): string[] {
  return codes.slice(0, MAX_NAMED_CODES);
}

function succeeded(findings: Findings, code: string): boolean {
  return findings.success.some((finding) => finding.code === code);
}
