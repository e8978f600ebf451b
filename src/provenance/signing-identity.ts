import { stat } from 'node:fs/promises';
import type { Signer, SigningAlgorithm } from './signer.ts';

/** The name of the identity that is configured: there is one. */
export const DEFAULT_IDENTITY = 'default';

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

/** An identity without its key, as JSON for other processes. */
export interface IdentityDescription extends Pick<SigningIdentity, 'kind' | 'subject' | 'file' | 'deviations'> {
  /** The name that manifest drafts have of it. */
  readonly name: string;
  /** The number that requests to the signer have of its key. */
  readonly key: number;
  readonly algorithm: SigningAlgorithm;
  /** DER in base64, in the order of the signer's chain. */
  readonly certificateChain: readonly string[];
  readonly signatureSizeBytes: number;
  /** The expiry of the certificate of the chain that ends first, as in ISO 8601. */
  readonly notAfter: string;
  /** The permissions of the key's file, where others than its owner and group can read or others than its owner write it. */
  readonly exposedKey: { readonly file: string; readonly mode: string } | null;
}

/** Permission bits with which others may read the key's file, or others than its owner may change it. */
const EXPOSING_MODE = 0o026;

/** Describes an identity for processes that do not hold its key. */
export async function describeIdentity(
  { signer, kind, subject, notAfter, file, deviations }: SigningIdentity,
  { name, key }: Pick<IdentityDescription, 'name' | 'key'>,
  keyFile = file,
): Promise<IdentityDescription> {
  const { algorithm, certificateChain, signatureSizeBytes } = signer;
  const mode = (await stat(keyFile)).mode & 0o777;
  return {
    name,
    key,
    kind,
    subject,
    file,
    deviations,
    algorithm,
    certificateChain: certificateChain.map((der) => der.toString('base64')),
    signatureSizeBytes,
    notAfter: notAfter.toISOString(),
    exposedKey: (mode & EXPOSING_MODE) === 0 ? null : { file: keyFile, mode: mode.toString(8).padStart(4, '0') },
  };
}
