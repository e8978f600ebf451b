import {
  completeManifest,
  DRY_RUN_BINDING,
  DRY_RUN_GENERATOR,
  defineManifest,
  newInstanceId,
} from '../authoring/manifest-definition.ts';
import type { CustomAssertion, StatedAction } from '../manifest-request.ts';
import { READER_SETTINGS, wasmReader } from '../reading/wasm-reader.ts';
import { MANIFEST_STORE_TYPE, type ManifestDefinition, readReport } from '../sdk/sdk.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import { type ManifestReport, problemsIn, type ValidationRule } from '../validation-report.ts';

/** The assertions of a caller that a dry run checks; the actions become one of them. */
export interface CheckedAssertions {
  readonly assertions: readonly CustomAssertion[];
  readonly actions: readonly StatedAction[];
}

/** Defines a manifest that is bound to no asset, for `judgeManifest`: only its assertions and its signature matter. */
export function dryRunManifest({ assertions, actions }: CheckedAssertions): ManifestDefinition {
  const json = { title: 'dry run', relationship: 'parentOf', label: 'parent' };
  const parent = { json, store: null, isValidated: false, failures: [], warnings: [] };
  const request = {
    identity: 'dry run',
    title: 'dry run',
    mediaType: 'application/octet-stream',
    assertions,
    origin: { kind: 'reference', reference: 'dry run' },
    components: [],
    inputs: [],
    statedActions: actions,
    actions: [],
    allActionsIncluded: true,
  } as const;
  const ingredients = { parent, components: [], inputs: [], labels: new Map() };
  const contents = { request, ingredients, generator: DRY_RUN_GENERATOR };
  return completeManifest(defineManifest(contents, { now: new Date(), instanceId: newInstanceId() }), [
    DRY_RUN_BINDING,
  ]);
}

/** A problem that a reader found in a manifest: a status code of the specification, or why it cannot be read at all. */
export interface ManifestProblem {
  readonly reader: 'native' | 'wasm';
  readonly problem: string;
}

/** The verdict of both official readers on a manifest store without its asset. */
interface ManifestJudgement {
  /** Empty where both readers accept the active manifest. */
  readonly problems: readonly ManifestProblem[];
  /** The native reader's report; null where it cannot read the manifest store. */
  readonly report: ManifestReport | null;
}

/** Accepts a manifest that is valid apart from its asset, which is missing. */
const VALID_WITHOUT_ASSET: ValidationRule = {
  tolerated: ['signingCredential.untrusted', 'cawg.x509.credential.untrusted', 'assertion.dataHash.mismatch'],
  required: [['claimSignature.validated']],
};

/**
 * Validates a manifest store (JUMBF) of `dryRunManifest` with both official readers. They differ: the WASM reader, a newer
 * release, refuses content and certificates that the native one accepts, and reads identity assertions. Takes about 10 ms for a small manifest; the first
 * call loads the WASM reader (100 ms and more).
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
    const reader = await WasmReader.fromBytes(MANIFEST_STORE_TYPE, store, READER_SETTINGS);
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
  return problemsIn(report?.validation_results, VALID_WITHOUT_ASSET).map((problem) => ({ reader, problem }));
}
