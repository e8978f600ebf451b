import { stat } from 'node:fs/promises';
import { type CredentialSettings, type SignerSettings, secretFilesOf } from '#config/identities.ts';
import type { Signer, SigningAlgorithm } from './signer.ts';

/** A property of a signing certificate that C2PA's certificate policy forbids, so that readers with C2PA's trust list refuse it. */
export interface ProfileDeviation {
  /** The object identifier that is missing, or of the profile that is violated. */
  readonly oid: string;
  readonly problem: string;
  readonly remedy: string;
}

/** A credential without its key, as JSON for other processes. */
export interface CredentialDescription {
  /** `development` identities are made by the service itself; nobody has a reason to trust them. */
  readonly kind: 'configured' | 'development';
  /** The subject of the leaf certificate. */
  readonly subject: string;
  /** The expiry of the certificate of the chain that ends first, as in ISO 8601. */
  readonly notAfter: string;
  /** Properties of the leaf that some readers refuse. */
  readonly deviations: readonly ProfileDeviation[];
  /** The file that the certificates were read from. */
  readonly file: string;
  /** The certificate of the leaf's issuer, where that file has it, also a root, which signatures leave out: DER in base64. */
  readonly issuer?: string | undefined;
  /** The number of the signer process that holds the key: 0 holds all PEM keys, each other credential has one of its own. */
  readonly process: number;
  /** The number that requests to that process have of its key. */
  readonly key: number;
  readonly keyKind: SignerSettings['type'];
  readonly algorithm: SigningAlgorithm;
  /** DER in base64, in the order of the signer's chain. */
  readonly certificateChain: readonly string[];
  readonly signatureSizeBytes: number;
  /** A file of the key, PIN or token that others than its owner and group can read, or others than its owner write. */
  readonly exposedKey: { readonly file: string; readonly mode: string } | null;
}

/** A signing key with its certificates, checked against the certificate profile of C2PA, and what its files say of it. */
export interface SigningIdentity
  extends Pick<CredentialDescription, 'kind' | 'subject' | 'notAfter' | 'deviations' | 'file' | 'issuer'> {
  readonly signer: Signer;
}

/** An identity without its keys. */
export interface IdentityDescription extends CredentialDescription {
  /** The name that manifest drafts have of it. */
  readonly name: string;
  readonly tsaUrls: readonly string[];
  /** The key of its CAWG identity assertions; null where it makes none. */
  readonly publisher: CredentialDescription | null;
}

/** Returns the credentials of an identity: that of claims, and that of its publisher where there is one. */
export function credentialsOf(identity: IdentityDescription): readonly CredentialDescription[] {
  return identity.publisher === null ? [identity] : [identity, identity.publisher];
}

/** Returns the signing certificate in DER, and that of its issuer where the identity's file has it. */
export function issuedOf({ certificateChain, issuer }: CredentialDescription): readonly Buffer[] {
  return [...certificateChain.slice(0, 1), issuer ?? []].flat().map((der) => Buffer.from(der, 'base64'));
}

/** Returns the numbers of the signer processes that hold keys of some identities, in the order of the channels to them. */
export function signerProcessesOf(identities: readonly IdentityDescription[]): readonly number[] {
  const numbers = identities.flatMap(credentialsOf).map(({ process }) => process);
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** Permission bits with which others may read a file, or others than its owner may change it. */
const EXPOSING_MODE = 0o026;

/** Describes a credential for processes that do not hold its key. */
export async function describeCredential(
  { signer, ...described }: SigningIdentity,
  settings: CredentialSettings,
  numbers: Pick<CredentialDescription, 'process' | 'key'>,
): Promise<CredentialDescription> {
  const { algorithm, certificateChain, signatureSizeBytes } = signer;
  return {
    ...described,
    ...numbers,
    keyKind: settings.signer.type,
    algorithm,
    certificateChain: certificateChain.map((der) => der.toString('base64')),
    signatureSizeBytes,
    exposedKey: await exposedKeyOf(secretFilesOf(settings)),
  };
}

async function exposedKeyOf(files: readonly string[]): Promise<CredentialDescription['exposedKey']> {
  for (const file of files) {
    // A token that asks for no PIN needs no file of it.
    const mode = ((await stat(file).catch(() => null))?.mode ?? 0) & 0o777;
    if ((mode & EXPOSING_MODE) !== 0) return { file, mode: mode.toString(8).padStart(4, '0') };
  }
  return null;
}
