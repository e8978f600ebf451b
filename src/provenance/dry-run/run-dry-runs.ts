import { serveParent, tellParent } from '#processes/parent.ts';
import { isSameData } from '../authoring/sdk-json.ts';
import { zeroSignature } from '../authoring/sign-manifest.ts';
import { temporaryIdentity } from '../identity/development-identity.ts';
import type { CustomAssertion, StatedAction } from '../manifest-request.ts';
import { signManifest } from '../sdk/sdk.ts';
import { sdkProblem } from '../sdk/sdk-problem.ts';
import { type CheckedAssertions, dryRunManifest, judgeManifest } from './dry-run-manifest.ts';
import type { DryRunAnswer, DryRunRequest } from './dry-run-process.ts';

// The process behind `createAssertionChecker`.

const { signer } = await temporaryIdentity();
const signature = { ...zeroSignature(signer), sign: signer.sign };
/** Never aborted: the service kills the process when a batch exceeds its budget. */
const { signal } = new AbortController();

serveParent(async (request: DryRunRequest) => {
  const refusal = request === 'start' ? null : await refusalOf(request);
  tellParent({ answer: { refusal } satisfies DryRunAnswer });
});

async function refusalOf(checked: CheckedAssertions): Promise<DryRunAnswer['refusal']> {
  const problem = await problemOf(checked);
  if (problem === null) return null;
  const { assertions, actions } = checked;
  return { index: null, problem, ...(actions.length === 0 && (await firstRefused(assertions, problem))) };
}

/**
 * Finds the first refused assertion by bisection: the SDK's messages do not name it. Returns null where each half is
 * accepted, and only both together are not.
 */
async function firstRefused(
  assertions: readonly CustomAssertion[],
  problem: string,
): Promise<{ index: number; problem: string } | null> {
  if (assertions.length === 1) return { index: 0, problem };
  const middle = Math.ceil(assertions.length / 2);
  for (const [offset, half] of [
    [0, assertions.slice(0, middle)],
    [middle, assertions.slice(middle)],
  ] as const) {
    const halfProblem = await problemOf({ assertions: half, actions: [] });
    const found = halfProblem === null ? null : await firstRefused(half, halfProblem);
    if (found !== null) return { ...found, index: offset + found.index };
  }
  return null;
}

/** Builds, signs and reads a manifest with the assertions and actions. Returns null where it carries them unchanged. */
async function problemOf(checked: CheckedAssertions): Promise<string | null> {
  const { assertions, actions } = checked;
  try {
    const store = await signManifest(dryRunManifest(checked), signature, signal);
    const { problems, report } = await judgeManifest(store, signal);
    const [first] = problems;
    if (first !== undefined) return `it makes the manifest invalid (${first.problem})`;
    const manifest = report?.manifests[report.active_manifest ?? ''];
    const read = new Map(manifest?.assertions?.map((assertion) => [assertion.label, assertion.data]));
    const isCarried = ({ label, data }: CustomAssertion): boolean =>
      read.has(label) && isSameData(data, read.get(label));
    const [, ...readActions] = (read.get('c2pa.actions.v2') as ActionsData | undefined)?.actions ?? [];
    const isStated = (action: StatedAction, index: number): boolean => isSameAction(action, readActions[index]);
    return assertions.every(isCarried) && actions.every(isStated) ? null : 'readers would not get it back as it is';
  } catch (error) {
    return sdkProblem(error);
  }
}

interface ActionsData {
  readonly actions: readonly Readonly<Record<string, unknown>>[];
}

/** Compares an action with the one that a reader shows, which may refer to an ingredient beside. */
function isSameAction(
  { parameters = {}, ...stated }: StatedAction,
  shown: ActionsData['actions'][number] = {},
): boolean {
  const { parameters: shownParameters, ...rest } = shown;
  const { ingredients: _, ...own } = (shownParameters ?? {}) as Record<string, unknown>;
  return isSameData(stated, rest) && isSameData(parameters, own);
}
