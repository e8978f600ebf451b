import { createPrivateKey, generateKeyPairSync, type KeyObject, randomUUID, X509Certificate } from 'node:crypto';
import { link, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { SigningIdentity } from '../signing-identity.ts';
import { EXTENDED_KEY_USAGE } from './certificate-profile.ts';
import { createKeySigner } from './key-signer.ts';
import { pemBlocks, pemOf } from './pem.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
/** Leaves live at most 366 days (C2PA conformance programme). */
const LEAF_LIFETIME_DAYS = 365;
const AUTHORITY_LIFETIME_DAYS = 3650;
const CLOCK_TOLERANCE_DAYS = 1;
/** A running service keeps its identity, so the remaining time must outlive the longest time between two starts. */
const RENEWAL_DAYS = 120;

const AUTHORITY = { commonName: 'Attestream development authority', organization: 'Attestream development identity' };
const LEAF = { commonName: 'Attestream development signer', organization: 'Attestream development identity' };

/** The contents of the file, each as PEM, in this order. */
interface IdentityPem {
  readonly leaf: string;
  readonly authority: string;
  readonly leafKey: string;
  readonly authorityKey: string;
}

/**
 * Loads the development identity: an authority of its own and a leaf for ES256. It is made once, in a folder and a
 * file that only the service's user may open; the leaf is renewed under the same authority long before it expires.
 * Several processes may do this at once: one wins, and the others load its identity. Throws `IDENTITY_FOLDER_UNUSABLE`, or
 * `IDENTITY_INVALID` where the file is damaged.
 */
export async function loadDevelopmentIdentity(file: string, now = new Date()): Promise<SigningIdentity> {
  try {
    const existing = await readIdentity(file);
    if (existing === null) return identityOf(await createFile(file, await makeIdentity(now)), file);
    if (!expiresWithin(existing.leaf, RENEWAL_DAYS, now)) return identityOf(existing, file);
    const renewed = await renewIdentity(existing, now);
    await withStaged(file, renewed, (staged) => rename(staged, file));
    return identityOf(renewed, file);
  } catch (cause) {
    if (!isSystemError(cause)) throw cause;
    throw new AppError(
      'IDENTITY_FOLDER_UNUSABLE',
      { folder: path.dirname(file), problem: problemOf(cause) },
      { cause },
    );
  }
}

/** Returns the identity in a file; null where there is no such file. */
async function readIdentity(file: string): Promise<IdentityPem | null> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return null;
    throw error;
  }
  const [leaf, authority, leafKey, authorityKey] = pemBlocks(text).map(({ pem }) => pem);
  if (leaf === undefined || authority === undefined || leafKey === undefined || authorityKey === undefined) {
    throw new AppError('IDENTITY_INVALID', {
      file,
      problems: ['it is damaged. Remove it: a new one is made at the next start'],
    });
  }
  return { leaf, authority, leafKey, authorityKey };
}

/** Makes an identity of this kind that is kept nowhere. */
export async function temporaryIdentity(): Promise<SigningIdentity> {
  return identityOf(await makeIdentity(new Date()), 'none');
}

async function makeIdentity(now: Date): Promise<IdentityPem> {
  const { issueCertificate, KEY_USAGE } = await import('./x509.ts');
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyUsage = KEY_USAGE.keyCertSign | KEY_USAGE.cRLSign;
  const validity = validityFrom(now, AUTHORITY_LIFETIME_DAYS);
  const contents = { ...AUTHORITY, ...validity, publicKey, isCa: true, keyUsage };
  const authority = pemOf(await issueCertificate(contents, { ...AUTHORITY, privateKey }));
  return issueLeaf(authority, privateKey, now);
}

/** Issues a new leaf, and a new authority where the old one would not outlive it. */
async function renewIdentity({ authority, authorityKey }: IdentityPem, now: Date): Promise<IdentityPem> {
  if (expiresWithin(authority, LEAF_LIFETIME_DAYS, now)) return makeIdentity(now);
  return issueLeaf(authority, createPrivateKey(authorityKey), now);
}

async function issueLeaf(authority: string, authorityKey: KeyObject, now: Date): Promise<IdentityPem> {
  const { issueCertificate, KEY_USAGE } = await import('./x509.ts');
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const contents = {
    ...LEAF,
    ...validityFrom(now, LEAF_LIFETIME_DAYS),
    publicKey,
    keyUsage: KEY_USAGE.digitalSignature,
    extendedKeyUsages: [EXTENDED_KEY_USAGE.emailProtection],
  };
  const leaf = pemOf(await issueCertificate(contents, { ...AUTHORITY, privateKey: authorityKey }));
  return { leaf, authority, leafKey: pemOfKey(privateKey), authorityKey: pemOfKey(authorityKey) };
}

/** Creates the file. Returns its identity, which is that of another process where one was faster. */
async function createFile(file: string, identity: IdentityPem): Promise<IdentityPem> {
  await mkdir(path.dirname(file), { recursive: true, mode: 0o700 });
  return withStaged(file, identity, async (staged) => {
    try {
      await link(staged, file);
      return identity;
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
      return (await readIdentity(file)) ?? identity;
    }
  });
}

/** Writes and syncs the identity under a temporary name beside the file, and removes that name after `commit`. */
async function withStaged<T>(file: string, identity: IdentityPem, commit: (staged: string) => Promise<T>): Promise<T> {
  const staged = `${file}.${randomUUID()}.new`;
  try {
    const contents = [identity.leaf, identity.authority, identity.leafKey, identity.authorityKey].join('');
    await writeFile(staged, contents, { flag: 'wx', mode: 0o600, flush: true });
    return await commit(staged);
  } finally {
    await rm(staged, { force: true });
  }
}

function identityOf({ leaf, leafKey }: IdentityPem, file: string): SigningIdentity {
  const certificate = new X509Certificate(leaf);
  // The authority is the root of this short chain, and roots are left out of signatures.
  const signer = createKeySigner(createPrivateKey(leafKey), 'es256', [certificate.raw]);
  const subject = certificate.subject.replaceAll('\n', ', ');
  const notAfter = certificate.validToDate.toISOString();
  return { signer, kind: 'development', subject, notAfter, file, deviations: [] };
}

function expiresWithin(certificate: string, days: number, now: Date): boolean {
  return new X509Certificate(certificate).validToDate.getTime() < now.getTime() + days * DAY_MS;
}

function validityFrom(now: Date, lifetimeDays: number): { notBefore: Date; notAfter: Date } {
  const notBefore = new Date(now.getTime() - CLOCK_TOLERANCE_DAYS * DAY_MS);
  return { notBefore, notAfter: new Date(notBefore.getTime() + lifetimeDays * DAY_MS) };
}

function pemOfKey(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }) as string;
}
