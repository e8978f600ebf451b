import { MANIFEST_STORE_TYPE, type ManifestReport, readReport } from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';
import { SETTINGS, wasmReader } from './wasm-reader.ts';

/** Something that a reader holds against a manifest: a status code of the specification, or why it cannot be read at all. */
export interface ManifestProblem {
  readonly reader: 'native' | 'wasm';
  readonly problem: string;
}

/** What both official readers say of a manifest store without its asset. */
export interface ManifestJudgement {
  /** Empty where neither reader calls the active manifest invalid. */
  readonly problems: readonly ManifestProblem[];
  /** What the native reader shows; null where it cannot read the manifest store. */
  readonly report: ManifestReport | null;
}

/** Nobody has to trust the certificate, and there is no asset that the hash could match. */
const TOLERATED = new Set(['signingCredential.untrusted', 'assertion.dataHash.mismatch']);
const REQUIRED = 'claimSignature.validated';

/**
 * Has both official readers validate a manifest store (JUMBF) that stands alone and is bound by a `c2pa.hash.data`. They
 * differ: the WASM reader, a newer release, refuses content and certificates that the native one lets pass. Takes about
 * 10 ms for a small manifest; the WASM reader's first call loads it (100 ms and more). Nothing is ever fetched.
 */
export async function judgeManifest(store: Uint8Array, signal: AbortSignal): Promise<ManifestJudgement> {
  const { problems, report } = await judgeNatively(store, signal);
  signal.throwIfAborted();
  return { problems: [...problems, ...(await judgeByWasm(store))], report };
}

async function judgeNatively(store: Uint8Array, signal: AbortSignal): Promise<ManifestJudgement> {
  try {
    const report = await readReport({ bytes: store, mediaType: MANIFEST_STORE_TYPE }, signal);
    return { problems: problemsOf('native', report), report };
  } catch (error) {
    signal.throwIfAborted();
    return { problems: [{ reader: 'native', problem: sdkProblem(error) }], report: null };
  }
}

async function judgeByWasm(store: Uint8Array): Promise<ManifestProblem[]> {
  const WasmReader = await wasmReader();
  try {
    const reader = await WasmReader.fromBytes(MANIFEST_STORE_TYPE, store, SETTINGS);
    try {
      return problemsOf('wasm', reader.manifestStore() as ManifestReport);
    } finally {
      reader.free();
    }
  } catch (error) {
    return [{ reader: 'wasm', problem: sdkProblem(error) }];
  }
}

function problemsOf(reader: ManifestProblem['reader'], report: ManifestReport | null): ManifestProblem[] {
  const findings = report?.validation_results?.activeManifest;
  if (findings === undefined) return [{ reader, problem: 'no manifest was found' }];
  const codes = new Set(findings.failure.map(({ code }) => code).filter((code) => !TOLERATED.has(code)));
  // Silence is no proof: a signature that nobody looked at is no finding either.
  if (!findings.success.some(({ code }) => code === REQUIRED)) codes.add(`without ${REQUIRED}`);
  return [...codes].map((problem) => ({ reader, problem }));
}
