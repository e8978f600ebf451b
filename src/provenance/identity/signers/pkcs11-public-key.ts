import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import type { Handle, PKCS11 } from 'pkcs11js';
import { itemAt } from '#errors/assert.ts';

// Attributes and key types of PKCS #11, version 2.40, and those of Edwards curves of version 3.0.
const CKA_KEY_TYPE = 0x100;
const CKA_MODULUS = 0x120;
const CKA_PUBLIC_EXPONENT = 0x122;
const CKA_EC_PARAMS = 0x180;
const CKA_EC_POINT = 0x181;
const CKK_RSA = 0x0;
const CKK_EC = 0x3;

/** Object identifiers of curves in DER, as `CKA_EC_PARAMS` holds them, and their names in a JWK. */
const CURVES: Readonly<Record<string, { readonly crv: string; readonly sizeBytes: number }>> = {
  '06082a8648ce3d030107': { crv: 'P-256', sizeBytes: 32 },
  '06052b81040022': { crv: 'P-384', sizeBytes: 48 },
  '06052b81040023': { crv: 'P-521', sizeBytes: 66 },
};
const ED25519_SIZE_BYTES = 32;

/** Reads the public key of an object. Throws errors of the module, and any where the attributes are of no such key. */
export function readTokenPublicKey(module: PKCS11, session: Handle, object: Handle): KeyObject {
  const read = (type: number): Buffer => itemAt(module.C_GetAttributeValue(session, object, [{ type }]), 0).value;
  const keyType = read(CKA_KEY_TYPE).readUInt32LE();
  if (keyType === CKK_RSA) {
    const [n, e] = [read(CKA_MODULUS), read(CKA_PUBLIC_EXPONENT)];
    return keyOf({ kty: 'RSA', n: base64url(n), e: base64url(e) });
  }
  const point = read(CKA_EC_POINT);
  // The point stands at the end, in an OCTET STRING or bare.
  if (keyType !== CKK_EC)
    return keyOf({ kty: 'OKP', crv: 'Ed25519', x: base64url(point.subarray(-ED25519_SIZE_BYTES)) });
  const { crv, sizeBytes } = CURVES[read(CKA_EC_PARAMS).toString('hex')] ?? { crv: 'unknown', sizeBytes: 0 };
  const [x, y] = [point.subarray(-2 * sizeBytes, -sizeBytes), point.subarray(-sizeBytes)];
  return keyOf({ kty: 'EC', crv, x: base64url(x), y: base64url(y) });
}

function keyOf(key: JsonWebKey): KeyObject {
  return createPublicKey({ key, format: 'jwk' });
}

function base64url(bytes: Buffer): string {
  return bytes.toString('base64url');
}
