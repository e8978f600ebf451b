import assert from 'node:assert';
import { constants, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { Signer, SigningAlgorithm } from '../signer.ts';
import type { DeviceAlgorithm } from './signers/device-key.ts';

const EC_ALGORITHMS: readonly SigningAlgorithm[] = ['es256', 'es384', 'es512'];
/** The curves of these, under their names in node:crypto. */
export const CURVES: Readonly<Partial<Record<SigningAlgorithm, string>>> = {
  es256: 'prime256v1',
  es384: 'secp384r1',
  es512: 'secp521r1',
};

const RSA_ALGORITHMS: readonly SigningAlgorithm[] = ['ps256', 'ps384', 'ps512'];

export const ECDSA_SIGNATURE_SIZES_BYTES: Readonly<Partial<Record<DeviceAlgorithm, number>>> = {
  es256: 64,
  es384: 96,
  es512: 132,
};
const ED25519_SIGNATURE_SIZE_BYTES = 64;

/** A signature takes some 0.03 ms, and 0.6 ms of processor time on another thread; with the other algorithms up to several. */
const QUICK_ALGORITHMS: ReadonlySet<SigningAlgorithm> = new Set(['es256', 'ed25519']);

const signBehind = promisify(sign);

/** Returns the algorithms that a key can sign with, the default first. */
export function algorithmsOfKey(key: KeyObject): readonly SigningAlgorithm[] {
  const { namedCurve, hashAlgorithm } = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'ec':
      return EC_ALGORITHMS.filter((name) => CURVES[name] === namedCurve);
    case 'rsa':
      return RSA_ALGORITHMS;
    case 'rsa-pss':
      // A key of this kind may be restricted to one hash.
      return RSA_ALGORITHMS.filter((name) => hashAlgorithm === undefined || hashOf(name) === hashAlgorithm);
    case 'ed25519':
      return ['ed25519'];
    default:
      return [];
  }
}

/** Creates a signer with a private key in memory. It signs on libuv's thread pool, unless that would take longer than the signature. */
export function createKeySigner(
  privateKey: KeyObject,
  algorithm: SigningAlgorithm,
  certificateChain: readonly Buffer[],
): Signer {
  assert(algorithmsOfKey(privateKey).includes(algorithm), 'the key can sign with the algorithm');
  const hash = hashOf(algorithm);
  const key = { key: privateKey, ...signatureOptions(algorithm) };
  return {
    algorithm,
    certificateChain,
    signatureSizeBytes: signatureSizeBytes(privateKey, algorithm),
    sign: QUICK_ALGORITHMS.has(algorithm)
      ? async (data) => sign(hash, data, key)
      : (data) => signBehind(hash, data, key),
  };
}

/** Returns the hash of an algorithm under its name in node:crypto; null for Ed25519, which signs the message itself. */
export function hashOf(algorithm: DeviceAlgorithm): 'sha256' | 'sha384' | 'sha512' | null {
  return algorithm === 'ed25519' ? null : (`sha${algorithm.slice(2)}` as 'sha256');
}

/** Returns the options of signatures in the form of COSE, or of PKCS #1 v1.5: ECDSA as `r ‖ s`, PSS with a salt as long as the hash. */
export function signatureOptions(algorithm: DeviceAlgorithm) {
  if (algorithm.startsWith('es')) return { dsaEncoding: 'ieee-p1363' } as const;
  if (!algorithm.startsWith('ps')) return {};
  return { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST };
}

/** Returns the size of the signatures of a key, private or public. */
export function signatureSizeBytes(key: KeyObject, algorithm: SigningAlgorithm): number {
  if (algorithm === 'ed25519') return ED25519_SIGNATURE_SIZE_BYTES;
  const ecdsa = ECDSA_SIGNATURE_SIZES_BYTES[algorithm];
  if (ecdsa !== undefined) return ecdsa;
  const { modulusLength } = key.asymmetricKeyDetails ?? {};
  assert(modulusLength !== undefined);
  return Math.ceil(modulusLength / 8);
}
