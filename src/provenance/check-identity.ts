import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import type { TimeStampSettings } from './authoring/time-stamps.ts';
import type { CheckedCredentials } from './checked-credentials.ts';
import type { ManifestProblem } from './dry-run/dry-run-manifest.ts';
import type { SignerSupervisor, SigningProcess } from './signer-supervisor.ts';
import { type CredentialDescription, type IdentityDescription, signerProcessesOf } from './signing-identity.ts';
import type { TrustSource } from './trust-lists.ts';

/** The use of a credential by identities, as fields of the log. */
export interface CredentialUse {
  /** The names of the identities, joined by commas. */
  readonly identity: string;
  readonly role: 'claim' | 'publisher';
}

/** Tells whether a certificate of the chain of a credential has expired. */
export function hasEnded({ notAfter }: CredentialDescription): boolean {
  return Date.parse(notAfter) < Date.now();
}

/**
 * Logs a credential with the trust list that has an anchor of it (null for none), and warns where nobody has a reason
 * to trust it, readers may refuse it, or others can read its key.
 */
export function logCredential(
  credential: CredentialDescription,
  use: CredentialUse,
  trust: TrustSource,
  log: Log,
): void {
  const { kind, keyKind, subject, notAfter, file, exposedKey, deviations } = credential;
  if (exposedKey !== null) {
    const remedy = `chmod 600 "${exposedKey.file}"`;
    log.warn({ ...use, ...exposedKey, remedy }, 'others can read or change a file that signing needs');
  }
  // The certificate policy of C2PA is about those who sign claims.
  for (const deviation of use.role === 'claim' ? deviations : []) {
    log.warn(
      { ...use, subject, file, ...deviation },
      'readers with the trust list of C2PA refuse the signing certificate',
    );
  }
  const trustList = trustListOf(credential, trust);
  const fields = { ...use, kind, key: keyKind, subject, not_after: notAfter, file, trust_list: trustList };
  if (kind === 'configured') return log.info(fields, 'signing identity loaded');
  log.warn(
    fields,
    'SIGNING WITH A DEVELOPMENT IDENTITY that nobody has a reason to trust. Set signing.certificate_path and signing.private_key_path before outputs are published.',
  );
}

/** Warns where outputs that are signed with a configured identity become invalid with its end, or are not trusted here. */
export function warnOfOutputs(identity: IdentityDescription, trust: TrustSource, log: Log): void {
  const { name, kind, file, notAfter, tsaUrls } = identity;
  if (kind === 'development') return;
  if (tsaUrls.length === 0) {
    const fields = { identity: name, key: 'signing.tsa_url', not_after: notAfter, remedy: 'Set signing.tsa_url.' };
    log.warn(fields, 'outputs get no time-stamp, and become invalid when the signing certificate expires');
  }
  if (trustListOf(identity, trust) === null) {
    const remedy = 'Add the root of the signing identity to trust.anchors.';
    log.warn(
      { identity: name, key: 'trust.anchors', file, remedy },
      'outputs are verified as valid, not as trusted: trust.anchors has no root of the signing identity',
    );
  }
}

/** Returns the name of the list with an anchor of a credential; null for none. */
function trustListOf({ certificateChain }: CredentialDescription, trust: TrustSource): string | null {
  const chain = certificateChain.map((der) => new X509Certificate(Buffer.from(der, 'base64')));
  return trust.current.listOfChain(chain);
}

const DAY_MS = 24 * 60 * 60 * 1000;

/** The days before the end of an identity from which the log warns of it. */
const WARNING_DAYS = 30;

/** Short looks and not daily ones: a clock that is set, a host that was suspended, or a renewal delays no warning. */
const LOOK_INTERVAL_MS = 10_000;

const REMEDIES = {
  configured: 'Renew it, and put the new certificate and key in the place of the old ones: no restart is needed.',
  development: 'Restart the service, which then makes a new one.',
} as const satisfies Record<CredentialDescription['kind'], string>;

/** A credential in force, and the identities that it is used by. */
export interface UsedCredential {
  readonly credential: CredentialDescription;
  readonly use: CredentialUse;
}

/**
 * Warns of the end of each credential in force, now and once for each of its last 30 days, and says once a day that it has ended.
 * Returns a function that stops this.
 */
export function watchExpiry(inForce: () => readonly UsedCredential[], log: Log): () => void {
  const told = new Map<string, string>();
  const look = () => {
    for (const { credential, use } of inForce()) {
      const { kind, subject, file, notAfter } = credential;
      const daysLeft = Math.floor((Date.parse(notAfter) - Date.now()) / DAY_MS);
      const day = `${notAfter} ${daysLeft}`;
      const key = `${use.role} ${use.identity}`;
      if (daysLeft >= WARNING_DAYS || day === told.get(key)) continue;
      told.set(key, day);
      const fields = { ...use, subject, file, not_after: notAfter, remedy: REMEDIES[kind] };
      if (daysLeft >= 0) log.warn({ ...fields, days_left: daysLeft }, 'the signing identity ends soon');
      else log.error(fields, 'the signing identity has ended: nothing is signed with it until it is renewed');
    }
  };
  look();
  const looks = setInterval(look, LOOK_INTERVAL_MS).unref();
  return () => clearInterval(looks);
}

const CHECK_PROCESS_URL = new URL(`./dry-run/run-identity-check${extname(import.meta.url)}`, import.meta.url);

/** The request of a check: the identity to sign with, and the authorities of the time-stamp; null for none. */
export interface SigningCheck {
  readonly identity: IdentityDescription;
  readonly timeStamps: TimeStampSettings | null;
}

/** The answer to a check: problems of what was signed, or why nothing could be signed. */
export type CheckAnswer = { readonly problems: readonly ManifestProblem[] } | { readonly error: AppErrorData };

const CHECK = { boundMs: 60_000, because: 'because it took too long' };

interface CheckParts {
  readonly launcher: Launcher;
  /** Credentials that were checked before. */
  readonly checked?: CheckedCredentials;
}

/**
 * Signs a small manifest with a credential of claims, which the signer has loaded. Throws `IDENTITY_EXPIRED`, `SIGNATURE_FAILED`, or
 * `IDENTITY_INVALID` where one of the official readers calls it invalid. The SDK runs in a process of its own, without the key. A
 * development identity is this program's own work, and not checked at each start: that takes half a second of processor time.
 */
export async function checkCredential(
  signer: SignerSupervisor,
  credential: CredentialDescription,
  { launcher, checked }: CheckParts,
): Promise<void> {
  const { file, kind, notAfter, key } = credential;
  if (hasEnded(credential)) throw new AppError('IDENTITY_EXPIRED', { notAfter });
  if (kind === 'development' || (await checked?.has(credential))) return;
  const identity = { ...credential, name: 'checked', tsaUrls: [], publisher: null };
  const problems = await signAndJudge({ identity, timeStamps: null }, launcher, (process, channelOf) =>
    signer.attach(process, channelOf(0), [key]).allow([key]),
  );
  if (problems.length === 0) return await checked?.add(credential);
  throw new AppError('IDENTITY_INVALID', {
    file,
    problems: problems.map(
      ({ reader, problem }) =>
        `the official ${reader === 'wasm' ? 'WASM' : 'native'} reader refuses what it signs (${problem}). Have the certificate issued by the C2PA certificate profile, with emailProtection among its extended key usages`,
    ),
  });
}

/**
 * Signs a small manifest in a process of its own, which `attach` gives the right to sign, and has both official readers judge it.
 * Throws the AppError with which nothing could be signed.
 */
export async function signAndJudge(
  check: SigningCheck,
  launcher: Launcher,
  attach: (process: SigningProcess, channelOf: (index: number) => Socket | null) => void,
): Promise<readonly ManifestProblem[]> {
  const child = new Child<SigningCheck, CheckAnswer>(launcher, CHECK_PROCESS_URL, {
    execArgv: [],
    writable: [],
    pipeCount: signerProcessesOf([check.identity]).length,
  });
  const kill = (because: string) => child.kill(because);
  const own = { exited: child.exited, giveChannel: (next: Socket) => next.destroy(), kill };
  attach(own, (index) => child.channel(index));
  const answer = await child.askOnce('the check of the signing identity', check, CHECK);
  if ('error' in answer) throw AppError.fromData(answer.error);
  return answer.problems;
}
