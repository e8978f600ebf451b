import { randomUUID } from 'node:crypto';
import { chmod, chown, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from '#bytes/file-source.ts';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { CollectedLog } from '#telemetry/collected-log.ts';
import type { Log } from '#telemetry/logger.ts';
import { logCredential, watchExpiry } from './check-identity.ts';
import { inspectIdentity, type PemCredential } from './identity/load-signing-identity.ts';
import { Signers } from './signers.ts';
import { type CredentialDescription, describeCredential } from './signing-identity.ts';
import type { TrustSource } from './trust-lists.ts';

/** The parts of the program that a check uses. */
interface CheckParts {
  readonly config: Config;
  readonly trust: TrustSource;
  readonly log: Log;
}

/**
 * Checks a chain and its key as the start of the service does, which stops at the problems; logs the same warnings. Signs once where
 * there are none. Throws `IDENTITY_FILE_UNREADABLE`, or `IDENTITY_INVALID` where the files hold no chain and no key that could sign.
 */
export async function checkIdentityFiles(
  settings: PemCredential,
  identity: string,
  { config, trust, log }: CheckParts,
): Promise<{ readonly credential: CredentialDescription; readonly problems: readonly string[] }> {
  const { identity: loaded, problems } = await inspectIdentity(settings);
  const credential = await describeCredential(loaded, settings, { process: 0, key: 0 });
  const use = { identity, role: 'claim' } as const;
  logCredential(credential, use, trust, log);
  watchExpiry(() => [{ credential, use }], log)();
  if (problems.length > 0) return { credential, problems };
  // Its warnings are those above.
  const parts = { config: withFiles(settings, identity, config), trust, log: new CollectedLog() };
  return { credential, problems: (await checkConfiguredIdentity(identity, parts)).problems };
}

/** Returns the configuration with a chain and its key as the only identity. */
function withFiles({ certificatePath, algorithm, signer }: PemCredential, name: string, config: Config): Config {
  const identity = { certificate_path: certificatePath, ...(algorithm && { algorithm }), signer };
  return { ...config, signing: { ...config.signing, identities: { [name]: identity }, ocsp: 'off' } };
}

/** The files of a chain and its key. */
export interface IdentityFiles {
  readonly certificatePath: string;
  readonly privateKeyPath: string;
}

/** The permissions of files that were not there before. */
const MODES = { certificate: 0o644, key: 0o600 } as const;

/** Permissions of the old file that a new one keeps: a group may read the key, and nobody else. */
const KEPT_MODES = { certificate: 0o664, key: 0o640 } as const;

interface Copy {
  readonly from: string;
  readonly to: string;
  /** The name beside it under which it is written. */
  readonly staged: string;
  readonly kind: keyof typeof MODES;
}

/**
 * Copies a chain and its key to where the service reads them. Each appears at once, under the owner and group of the file that
 * was there, or of the folder. Rejects with the error of the system, with the old pair in place where a file cannot be written.
 */
export async function installIdentityFiles(given: IdentityFiles, target: IdentityFiles): Promise<void> {
  const copies = [
    copyOf(given.privateKeyPath, target.privateKeyPath, 'key'),
    copyOf(given.certificatePath, target.certificatePath, 'certificate'),
  ];
  try {
    for (const copy of copies) await stage(copy);
    for (const { staged, to } of copies) await rename(staged, to);
  } finally {
    for (const { staged } of copies) await rm(staged, { force: true });
  }
  for (const { to } of copies) await syncFolder(dirname(to));
}

function copyOf(from: string, to: string, kind: Copy['kind']): Copy {
  return { from, to, kind, staged: `${to}.${randomUUID()}.new` };
}

async function stage({ from, to, staged, kind }: Copy): Promise<void> {
  const contents = await readFile(from);
  const before = await stat(to).catch(() => null);
  const owner = before ?? (await stat(dirname(to)));
  await writeFile(staged, contents, { flag: 'wx', mode: 0o600, flush: true });
  if (process.getuid?.() === 0) await chown(staged, owner.uid, owner.gid);
  await chmod(staged, before === null ? MODES[kind] : before.mode & KEPT_MODES[kind]);
}

/** Loads an identity of the configuration, by its name, and signs once with it, as the start of the service does; logs the same warnings. */
export async function checkConfiguredIdentity(
  name: string,
  { config, trust, log }: CheckParts,
): Promise<{ readonly credential?: CredentialDescription; readonly problems: readonly string[] }> {
  try {
    const signers = await Signers.start({ config: withOnly(name, config), launcher: new Launcher(), trust, log });
    signers.close();
    const credential = signers.identityOf(name);
    return { ...(credential && { credential }), problems: [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { problems = [error.message] } = error.details as { readonly problems?: readonly string[] };
    return { problems };
  }
}

/** Returns the configuration without the other identities. */
function withOnly(name: string, config: Config): Config {
  const identity = config.signing.identities[name];
  const identities = identity === undefined ? {} : { [name]: identity };
  return { ...config, signing: { ...config.signing, identities } };
}
