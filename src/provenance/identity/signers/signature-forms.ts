import { type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { hashOf, signatureOptions } from '../key-signer.ts';
import type { DeviceAlgorithm } from './device-key.ts';

const verifyBehind = promisify(verify);

/** Returns true where a signature in the form of COSE, or of PKCS #1 v1.5, belongs to the data and the key. */
export async function isSignatureOf(
  publicKey: KeyObject,
  algorithm: DeviceAlgorithm,
  data: Uint8Array,
  signature: Buffer,
): Promise<boolean> {
  const input = { key: publicKey, ...signatureOptions(algorithm) };
  try {
    return await verifyBehind(hashOf(algorithm), data, input, signature);
  } catch {
    // The key is of another kind.
    return false;
  }
}

const SEQUENCE = 0x30;
const INTEGER = 0x02;
const LONG_LENGTH = 0x81;

/** Returns an ECDSA signature in DER (RFC 3279 §2.2.3) as `r ‖ s`. Returns an empty one where it is malformed, which belongs to nothing. */
export function p1363OfDer(der: Buffer, signatureSizeBytes: number): Buffer {
  const size = signatureSizeBytes / 2;
  const isLong = der[1] === LONG_LENGTH;
  const first = integerAt(der, isLong ? 3 : 2);
  const second = first === null ? null : integerAt(der, first.end);
  if (der[0] !== SEQUENCE || first === null || second === null || second.end !== der.length) return Buffer.alloc(0);
  if (first.digits.length > size || second.digits.length > size) return Buffer.alloc(0);
  const signature = Buffer.alloc(signatureSizeBytes);
  first.digits.copy(signature, size - first.digits.length);
  second.digits.copy(signature, signatureSizeBytes - second.digits.length);
  return signature;
}

function integerAt(der: Buffer, start: number): { readonly digits: Buffer; readonly end: number } | null {
  const [tag, length = 0] = der.subarray(start, start + 2);
  const end = start + 2 + length;
  if (tag !== INTEGER || length === 0 || end > der.length) return null;
  // A zero in front keeps the integer positive.
  const from = der[start + 2] === 0 ? start + 3 : start + 2;
  return { digits: der.subarray(from, end), end };
}
