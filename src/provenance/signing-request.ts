import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { AppError } from '#errors/app-error.ts';
import { EXTENDED_KEY_USAGE } from './identity/certificate-profile.ts';
import { algorithmsOfKey, CURVES, hashOf, signatureOptions } from './identity/key-signer.ts';
import type { DeviceAlgorithm, DeviceSettings } from './identity/signers/device-key.ts';
import { withDeviceKey } from './identity/signers/open-signer.ts';
import type { RequestKey } from './identity/x509.ts';
import type { SigningAlgorithm } from './signer.ts';

/** Readers ask for 2,048 bits, and public authorities for 3,072. */
const RSA_BITS = 3072;

/** The extended key usages of certificates of signers, by C2PA's profile, and of publishers, by that of CAWG. */
const USAGES = {
  claim: [EXTENDED_KEY_USAGE.emailProtection, EXTENDED_KEY_USAGE.c2paClaimSigning],
  publisher: [EXTENDED_KEY_USAGE.documentSigning],
};

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
  algorithm,
  ...subject
}: SigningRequest): Promise<{ readonly key: string; readonly request: string }> {
  const privateKey = generateKey(algorithm);
  const key = { key: privateKey, ...signatureOptions(requestAlgorithm(algorithm)) };
  const signing = async (data: Uint8Array) => sign(hashOf(algorithm), data, key);
  const request = await requestOf(subject, { publicKey: createPublicKey(privateKey), sign: signing }, algorithm);
  return { key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, request };
}

/**
 * Has a key in a device sign a request for a certificate. Returns PEM, and the algorithm: the default of the key where none is
 * given. Throws the errors of `openSigner`.
 */
export function makeDeviceRequest(
  subject: Omit<SigningRequest, 'algorithm'>,
  {
    signer,
    algorithm,
    use,
  }: {
    readonly signer: DeviceSettings;
    readonly algorithm?: SigningAlgorithm | undefined;
    readonly use: keyof typeof USAGES;
  },
  stateDir: string,
): Promise<{ readonly request: string; readonly algorithm: SigningAlgorithm }> {
  return withDeviceKey(signer, stateDir, async ({ publicKey, sign }) => {
    const possible = algorithmsOfKey(publicKey);
    const chosen = algorithm ?? possible[0];
    if (chosen === undefined || !possible.includes(chosen)) {
      const remedy = `The key can sign with ${possible.join(', ') || 'no algorithm of C2PA'}: choose one of these`;
      throw new AppError('SIGNER_ALGORITHM_UNSUPPORTED', { algorithm: chosen ?? 'C2PA', device: 'this key', remedy });
    }
    const key = { publicKey, sign: (data: Uint8Array) => sign(data, requestAlgorithm(chosen)) };
    return { request: await requestOf(subject, key, chosen, use), algorithm: chosen };
  });
}

async function requestOf(
  subject: Omit<SigningRequest, 'algorithm'>,
  key: RequestKey,
  algorithm: SigningAlgorithm,
  use: keyof typeof USAGES = 'claim',
): Promise<string> {
  const { KEY_USAGE, requestCertificate } = await import('./identity/x509.ts');
  const contents = {
    ...subject,
    keyUsage: KEY_USAGE.digitalSignature,
    extendedKeyUsages: USAGES[use],
  };
  return requestCertificate(contents, key, algorithm);
}

/** Returns the algorithm of a request's signature: authorities know RSA by PKCS #1 v1.5, whatever the key signs later. */
function requestAlgorithm(algorithm: SigningAlgorithm): DeviceAlgorithm {
  return algorithm.startsWith('ps') ? (`rs${algorithm.slice(2)}` as DeviceAlgorithm) : algorithm;
}

function generateKey(algorithm: SigningAlgorithm): KeyObject {
  const namedCurve = CURVES[algorithm];
  if (namedCurve !== undefined) return generateKeyPairSync('ec', { namedCurve }).privateKey;
  if (algorithm === 'ed25519') return generateKeyPairSync('ed25519').privateKey;
  return generateKeyPairSync('rsa', { modulusLength: RSA_BITS }).privateKey;
}
