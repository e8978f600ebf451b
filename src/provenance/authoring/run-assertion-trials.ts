import { generateKeyPairSync } from 'node:crypto';
import { EXTENDED_KEY_USAGE, issueCertificate, KEY_USAGE } from '../identity/certificate.ts';
import { createKeySigner } from '../identity/pem-signer.ts';
import type { Signer } from '../identity/signer.ts';
import { trialSignature } from '../identity/signing-pass.ts';
import { judgeManifest } from '../reading/judge-manifest.ts';
import { isSameData } from '../reading/read-back-data.ts';
import { signManifest } from '../sdk.ts';
import { sdkProblem } from '../sdk-problem.ts';
import type { TrialAnswer, TrialMessage } from './assertion-trial-messages.ts';
import { dryRunManifest } from './dry-run-manifest.ts';
import type { CustomAssertion } from './manifest-author.ts';

// The process behind `createAssertionTrial`. It ends with the service, in whatever way that ends; signals to the process
// group are left to the service, which ends it itself.

const SIGNER_LIFETIME_MS = 3650 * 24 * 60 * 60 * 1000;
const signer = throwAwaySigner();
const signature = {
  ...trialSignature({ signer, timeStampAuthority: null }),
  sign: (data: Buffer): Promise<Buffer> => signer.sign(data),
};
/** Nothing here is ever cancelled: a trial takes milliseconds, and the service ends the process if it must. */
const { signal } = new AbortController();

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => undefined);
process.on('message', async (assertions: readonly CustomAssertion[]) => {
  send({ refusal: await refusalOf(assertions) });
});
send('ready');

/** A service that is gone cannot be told; `disconnect` ends the process. */
function send(message: TrialMessage): void {
  process.send?.(message, undefined, undefined, () => undefined);
}

async function refusalOf(assertions: readonly CustomAssertion[]): Promise<TrialAnswer['refusal']> {
  const problem = await problemOf(assertions);
  if (problem === null) return null;
  return { index: null, problem, ...(await firstRefused(assertions, problem)) };
}

/**
 * Halves assertions of which one is refused until it is found: the SDK's messages do not say which they are about. Null
 * where each half passes, and only all together do not.
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
    const halfProblem = await problemOf(half);
    const found = halfProblem === null ? null : await firstRefused(half, halfProblem);
    if (found !== null) return { ...found, index: offset + found.index };
  }
  return null;
}

/** Builds, signs and reads a manifest with the assertions; null where it carries them as they are. */
async function problemOf(assertions: readonly CustomAssertion[]): Promise<string | null> {
  try {
    const store = await signManifest(dryRunManifest(assertions), signature, signal);
    const { problems, report } = await judgeManifest(store, signal);
    const [first] = problems;
    if (first !== undefined) return `it makes the manifest invalid (${first.problem})`;
    const manifest = report?.manifests[report.active_manifest ?? ''];
    const read = new Map(manifest?.assertions?.map((assertion) => [assertion.label, assertion.data]));
    const isCarried = ({ label, data }: CustomAssertion): boolean =>
      read.has(label) && isSameData(data, read.get(label));
    return assertions.every(isCarried) ? null : 'readers would not get it back as it is';
  } catch (error) {
    return sdkProblem(error);
  }
}

function throwAwaySigner(): Signer {
  const keys = (): ReturnType<typeof generateKeyPairSync> => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const leaf = keys();
  const contents = {
    commonName: 'trial',
    organization: 'trial',
    publicKey: leaf.publicKey,
    notBefore: new Date(Date.now() - SIGNER_LIFETIME_MS),
    notAfter: new Date(Date.now() + SIGNER_LIFETIME_MS),
    keyUsage: KEY_USAGE.digitalSignature,
    extendedKeyUsages: [EXTENDED_KEY_USAGE.emailProtection],
  };
  const certificate = issueCertificate(contents, { commonName: 'trial authority', privateKey: keys().privateKey });
  return createKeySigner(leaf.privateKey, 'es256', [certificate]);
}
