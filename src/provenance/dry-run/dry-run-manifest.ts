import {
  completeManifest,
  DRY_RUN_BINDING,
  DRY_RUN_GENERATOR,
  defineManifest,
  newInstanceId,
} from '../authoring/manifest-definition.ts';
import type { CustomAssertion, StatedAction } from '../manifest-request.ts';
import { type AssetReading, assetReadingOf } from '../official-reader.ts';
import { answerOf } from '../reading/reader-thread.ts';
import { NO_PUBLISHERS } from '../reading/wasm-reader.ts';
import { MANIFEST_STORE_TYPE, type ManifestDefinition } from '../sdk/sdk.ts';
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
export async function judgeManifest(bytes: Uint8Array, signal: AbortSignal): Promise<ManifestJudgement> {
  const asset = { bytes, mediaType: MANIFEST_STORE_TYPE };
  const native = await assetReadingOf(asset, null, signal);
  signal.throwIfAborted();
  const answer = await answerOf({ asset, anchors: NO_PUBLISHERS, answer: 'report' });
  const wasm = 'report' in answer ? answer.report : answer;
  return {
    problems: [...problemsOf('native', native), ...problemsOf('wasm', wasm)],
    report: native === 'none' || 'problem' in native ? null : native,
  };
}

function problemsOf(reader: ManifestProblem['reader'], reading: AssetReading): ManifestProblem[] {
  if (reading !== 'none' && 'problem' in reading) return [{ reader, problem: reading.problem }];
  const results = reading === 'none' ? null : reading.validation_results;
  return problemsIn(results, VALID_WITHOUT_ASSET).map((problem) => ({ reader, problem }));
}
