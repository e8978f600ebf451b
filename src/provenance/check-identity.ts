import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import type { TimeStampSettings } from './authoring/time-stamps.ts';
import type { ManifestProblem } from './dry-run/dry-run-manifest.ts';
import { FileWatch, stateOfFile } from './file-watch.ts';
import { identityFiles } from './identity/load-signing-identity.ts';
import { watchExpiry } from './identity-expiry.ts';
import { type SignerOptions, SignerSupervisor } from './signer-supervisor.ts';
import type { IdentityDescription } from './signing-identity.ts';
import type { TrustSource } from './trust-lists.ts';

interface StartOptions extends SignerOptions {
  /** Says whether the identity is on a trust list. */
  readonly trust: TrustSource;
  /** Time between two looks at the files of the identity, in milliseconds. */
  readonly pollIntervalMs?: number;
}

/** The looks at a renewed pair that cannot be used before it is warned of: a minute of them. */
const MAX_RENEWAL_ATTEMPTS = 30;

/**
 * Starts the process that holds the key, and has both official readers judge what it signs. From then on it warns of the end of
 * the identity, and renews it when its files are replaced. Throws an AppError that names the file, its problem, and the remedy.
 */
export async function startSigner(options: StartOptions): Promise<SignerSupervisor> {
  const { config, log } = options;
  const files = identityFiles(config);
  const usedState = await stateOf(files);
  const signer = await SignerSupervisor.start(options);
  try {
    // Operations that sign nothing go on with an identity that has ended, and the files are watched.
    if (!hasEnded(signer.identity)) await checkIdentity(signer, signer.identity, options.launcher);
  } catch (error) {
    signer.close();
    throw error;
  }
  const announce = () => logIdentity(signer.identity, options.trust, log);
  announce();
  warnOfOutputs(signer.identity, options);
  signer.onRenewal(announce);
  signer.onClose(watchExpiry(() => signer.identity, log));
  const watch = new FileWatch({
    stateOf: () => stateOf(files),
    usedState,
    reload: () => signer.renew((candidate) => checkIdentity(signer, candidate, options.launcher)),
    refused: ({ message: problem }) => {
      const fields = { problem, not_after: signer.identity.notAfter };
      log.warn(fields, 'the changed files of the signing identity cannot be used; the old one stays in force');
    },
    maxAttempts: MAX_RENEWAL_ATTEMPTS,
    pollIntervalMs: options.pollIntervalMs,
  });
  signer.onClose(() => watch.close());
  return signer;
}

function hasEnded({ notAfter }: IdentityDescription): boolean {
  return Date.parse(notAfter) < Date.now();
}

async function stateOf(files: readonly string[]): Promise<string> {
  return (await Promise.all(files.map(stateOfFile))).join();
}

/**
 * Logs the identity with the trust list that has an anchor of it (null for none), and warns where nobody has a reason
 * to trust it, readers may refuse it, or others can read its key.
 */
export function logIdentity(identity: IdentityDescription, trust: TrustSource, log: Log): void {
  const { kind, subject, notAfter, file, exposedKey, deviations } = identity;
  if (exposedKey !== null) {
    const remedy = `chmod 600 "${exposedKey.file}"`;
    log.warn({ ...exposedKey, remedy }, 'others can read or change the file of the signing key');
  }
  for (const deviation of deviations) {
    log.warn({ subject, file, ...deviation }, 'readers with the trust list of C2PA refuse the signing certificate');
  }
  const fields = { kind, subject, not_after: notAfter, file, trust_list: trustListOf(identity, trust) };
  if (kind === 'configured') return log.info(fields, 'signing identity loaded');
  log.warn(
    fields,
    'SIGNING WITH A DEVELOPMENT IDENTITY that nobody has a reason to trust. Set signing.certificate_path and signing.private_key_path before outputs are published.',
  );
}

/** Warns where outputs that are signed with a configured identity become invalid with its end, or are not trusted here. */
function warnOfOutputs(identity: IdentityDescription, { config, trust, log }: StartOptions): void {
  const { kind, file, notAfter } = identity;
  if (kind === 'development') return;
  if (config.signing.tsa_url.length === 0) {
    const fields = { key: 'signing.tsa_url', not_after: notAfter, remedy: 'Set signing.tsa_url.' };
    log.warn(fields, 'outputs get no time-stamp, and become invalid when the signing certificate expires');
  }
  if (trustListOf(identity, trust) === null) {
    const fields = { key: 'trust.anchors', file, remedy: 'Add the root of the signing identity to trust.anchors.' };
    log.warn(
      fields,
      'outputs are verified as valid, not as trusted: trust.anchors has no root of the signing identity',
    );
  }
}

/** Returns the name of the list with an anchor of an identity; null for none. */
function trustListOf({ certificateChain }: IdentityDescription, trust: TrustSource): string | null {
  const chain = certificateChain.map((der) => new X509Certificate(Buffer.from(der, 'base64')));
  return trust.current.listOfChain(chain);
}

const CHECK_PROCESS_URL = new URL(`./dry-run/run-identity-check${extname(import.meta.url)}`, import.meta.url);

/** The request of a check: the identity to sign with, and the authorities of the time-stamp; null for none. */
export interface SigningCheck {
  readonly identity: IdentityDescription;
  readonly timeStamps: TimeStampSettings | null;
}

const CHECK = { boundMs: 60_000, because: 'because it took too long' };

/**
 * Signs a small manifest with a configured identity, which the signer has loaded. Throws `IDENTITY_EXPIRED`, or
 * `IDENTITY_INVALID` where one of the official readers calls it invalid. The SDK runs in a process of its own, without the key. A development identity is this program's own work, and
 * not checked at each start: that takes half a second of processor time.
 */
export async function checkIdentity(
  signer: SignerSupervisor,
  identity: IdentityDescription,
  launcher: Launcher,
): Promise<void> {
  const { file, kind, notAfter } = identity;
  if (hasEnded(identity)) throw new AppError('IDENTITY_EXPIRED', { notAfter });
  if (kind === 'development') return;
  const problems = await judgeInProcess(signer, { identity, timeStamps: null }, launcher);
  if (problems.length === 0) return;
  throw new AppError('IDENTITY_INVALID', {
    file,
    problems: problems.map(
      ({ reader, problem }) =>
        `the official ${reader === 'wasm' ? 'WASM' : 'native'} reader refuses what it signs (${problem}). Have the certificate issued by the C2PA certificate profile, with emailProtection among its extended key usages`,
    ),
  });
}

/**
 * Signs a small manifest, with a time-stamp where settings are given. Resolves with null where that works, else with the problem.
 */
export async function probeSigning(
  signer: SignerSupervisor,
  launcher: Launcher,
  timeStamps: TimeStampSettings | null,
): Promise<string | null> {
  const [found] = await judgeInProcess(signer, { identity: signer.identity, timeStamps }, launcher);
  return found === undefined ? null : found.problem;
}

async function judgeInProcess(
  signer: SignerSupervisor,
  check: SigningCheck,
  launcher: Launcher,
): Promise<readonly ManifestProblem[]> {
  const child = new Child<SigningCheck, readonly ManifestProblem[]>(launcher, CHECK_PROCESS_URL, {
    execArgv: [],
    writable: [],
    pipeCount: 1,
  });
  const kill = (because: string) => child.kill(because);
  const own = { exited: child.exited, giveChannel: (next: Socket) => next.destroy(), kill };
  signer.attach(own, child.channel(), check.identity).allow(check.identity.name);
  return await child.askOnce('the check of the signing identity', check, CHECK);
}
