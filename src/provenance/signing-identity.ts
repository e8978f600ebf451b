import { stat } from 'node:fs/promises';
import { type CredentialSettings, keyFileOf, type SignerSettings } from '#config/identities.ts';
import type { Signer, SigningAlgorithm } from './signer.ts';

/** A property of a signing certificate that C2PA's certificate policy forbids, so that readers with C2PA's trust list refuse it. */
export interface ProfileDeviation {
  /** The object identifier that is missing, or of the profile that is violated. */
  readonly oid: string;
  readonly problem: string;
  readonly remedy: string;
}

/** A signing key with its certificates, checked against the certificate profile of C2PA. */
export interface SigningIdentity {
  readonly signer: Signer;
  /** `development` identities are made by the service itself; nobody has a reason to trust them. */
  readonly kind: 'configured' | 'development';
  /** The subject of the leaf certificate. */
  readonly subject: string;
  /** The expiry of the certificate of the chain that ends first. */
  readonly notAfter: Date;
  /** Properties of the leaf that some readers refuse. */
  readonly deviations: readonly ProfileDeviation[];
  /** The file that the certificates were read from. */
  readonly file: string;
}

/** A credential without its key, as JSON for other processes. */
export interface CredentialDescription extends Pick<SigningIdentity, 'kind' | 'subject' | 'file' | 'deviations'> {
  /** The number of the signer process that holds the key: 0 holds all PEM keys, each other credential has one of its own. */
  readonly process: number;
  /** The number that requests to that process have of its key. */
  readonly key: number;
  readonly keyKind: SignerSettings['type'];
  readonly algorithm: SigningAlgorithm;
  /** DER in base64, in the order of the signer's chain. */
  readonly certificateChain: readonly string[];
  readonly signatureSizeBytes: number;
  /** The expiry of the certificate of the chain that ends first, as in ISO 8601. */
  readonly notAfter: string;
  /** The permissions of the key's file, where others than its owner and group can read or others than its owner write it. */
  readonly exposedKey: { readonly file: string; readonly mode: string } | null;
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

/** Returns the numbers of the signer processes that hold keys of some identities, in the order of the channels to them. */
export function signerProcessesOf(identities: readonly IdentityDescription[]): readonly number[] {
  const numbers = identities.flatMap(credentialsOf).map(({ process }) => process);
  return [...new Set(numbers)].sort((a, b) => a - b);
}

/** Permission bits with which others may read the key's file, or others than its owner may change it. */
const EXPOSING_MODE = 0o026;

/** Describes a credential for processes that do not hold its key. */
export async function describeCredential(
  { signer, kind, subject, notAfter, file, deviations }: SigningIdentity,
  settings: CredentialSettings,
  { process, key }: Pick<CredentialDescription, 'process' | 'key'>,
): Promise<CredentialDescription> {
  const { algorithm, certificateChain, signatureSizeBytes } = signer;
  return {
    process,
    key,
    keyKind: settings.signer.type,
    kind,
    subject,
    file,
    deviations,
    algorithm,
    certificateChain: certificateChain.map((der) => der.toString('base64')),
    signatureSizeBytes,
    notAfter: notAfter.toISOString(),
    exposedKey: await exposedKeyOf(keyFileOf(settings)),
  };
}

async function exposedKeyOf(file: string | null): Promise<CredentialDescription['exposedKey']> {
  if (file === null) return null;
  const mode = (await stat(file)).mode & 0o777;
  return (mode & EXPOSING_MODE) === 0 ? null : { file, mode: mode.toString(8).padStart(4, '0') };
}
