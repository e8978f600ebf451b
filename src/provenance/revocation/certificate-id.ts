import { createHash, type X509Certificate } from 'node:crypto';
import { encodeElement, onlyElement, readElements, TAG } from './der.ts';

/** A certificate and the one of its issuer. */
export interface IssuedCertificate {
  readonly leaf: X509Certificate;
  readonly issuer: X509Certificate;
}

/** Hash algorithms by their object identifiers in DER, in hexadecimal digits. */
export const HASHES: Readonly<Record<string, string>> = {
  '06052b0e03021a': 'sha1',
  '0609608648016503040201': 'sha256',
  '0609608648016503040202': 'sha384',
  '0609608648016503040203': 'sha512',
};

/** The algorithm that responders know by all means (RFC 6960 §4.3); nothing here rests on its strength. */
const SHA_1 = encodeElement(TAG.sequence, Buffer.from('06052b0e03021a', 'hex'), encodeElement(TAG.null));

/** Returns the fields of a CertID (RFC 6960 §4.1.1) behind the algorithm: hashes of the issuer's name and key, and the number. */
export function certificateIdFields({ leaf, issuer }: IssuedCertificate, hash: string): Buffer {
  const { serialNumber, issuerName } = fieldsOf(leaf);
  const digest = (bytes: Buffer): Buffer => encodeElement(TAG.octets, createHash(hash).update(bytes).digest());
  return Buffer.concat([digest(issuerName), digest(keyBitsOf(issuer)), serialNumber]);
}

/** Returns an OCSP request for a certificate (RFC 6960 §4.1), without a nonce: responders may answer with a response that is kept. */
export function ocspRequestFor(certificate: IssuedCertificate): Buffer {
  const sequence = (...parts: Buffer[]): Buffer => encodeElement(TAG.sequence, ...parts);
  const certificateId = sequence(SHA_1, certificateIdFields(certificate, 'sha1'));
  return sequence(sequence(sequence(sequence(certificateId))));
}

function fieldsOf({ raw }: X509Certificate): { readonly serialNumber: Buffer; readonly issuerName: Buffer } {
  const [contents] = readElements(onlyElement(raw, TAG.sequence).content);
  const fields = readElements(contents?.content ?? Buffer.alloc(0));
  // Only the first version leaves out its number.
  const [serialNumber, , issuerName] = fields[0]?.tag === 0xa0 ? fields.slice(1) : fields;
  if (serialNumber === undefined || issuerName === undefined) throw new Error('a certificate cannot be read');
  return { serialNumber: serialNumber.whole, issuerName: issuerName.whole };
}

/** Returns the public key without its algorithm, and without the number of unused bits. */
function keyBitsOf({ publicKey }: X509Certificate): Buffer {
  const spki = publicKey.export({ type: 'spki', format: 'der' });
  const [, bits] = readElements(onlyElement(spki, TAG.sequence).content);
  return (bits?.content ?? Buffer.alloc(0)).subarray(1);
}
