import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { EXTENDED_KEY_USAGE } from './identity/certificate-profile.ts';
import type { SigningAlgorithm } from './signer.ts';

/** Readers ask for 2,048 bits, and public authorities for 3,072. */
const RSA_BITS = 3072;

/** The choices in a request for a signing certificate. */
export interface SigningRequest {
  readonly commonName: string;
  /** The name that readers show of the signer. */
  readonly organization: string;
  readonly algorithm: SigningAlgorithm;
}

/**
 * Makes a key, and a request for a certificate that the profile of C2PA lets it sign claims with (C2PA 2.2 §14.5.1). Both are
 * PEM.
 */
export async function makeSigningRequest({
  commonName,
  organization,
  algorithm,
}: SigningRequest): Promise<{ readonly key: string; readonly request: string }> {
  const { KEY_USAGE, requestCertificate } = await import('./identity/x509.ts');
  const privateKey = generateKey(algorithm);
  const contents = {
    commonName,
    organization,
    keyUsage: KEY_USAGE.digitalSignature,
    extendedKeyUsages: [EXTENDED_KEY_USAGE.emailProtection, EXTENDED_KEY_USAGE.c2paClaimSigning],
  };
  const request = await requestCertificate(contents, privateKey, algorithm);
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, request };
}

function generateKey(algorithm: SigningAlgorithm): KeyObject {
  switch (algorithm) {
    case 'es256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    case 'es384':
      return generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey;
    case 'es512':
      return generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey;
    case 'ed25519':
      return generateKeyPairSync('ed25519').privateKey;
    default:
      return generateKeyPairSync('rsa', { modulusLength: RSA_BITS }).privateKey;
  }
}
