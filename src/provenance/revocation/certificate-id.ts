import { createHash, type X509Certificate } from 'node:crypto';
import { CertID, OCSPRequest, Request, TBSRequest } from '@peculiar/asn1-ocsp';
import { AsnConvert, OctetString } from '@peculiar/asn1-schema';
import { AlgorithmIdentifier, Certificate } from '@peculiar/asn1-x509';

/** A certificate and the one of its issuer. */
export interface IssuedCertificate {
  readonly leaf: X509Certificate;
  readonly issuer: X509Certificate;
}

/** The algorithm that responders know by all means (RFC 6960 §4.3); nothing here rests on its strength. */
const SHA_1 = '1.3.14.3.2.26';

/** Hash algorithms by their object identifiers. */
const HASHES: Readonly<Record<string, string>> = {
  [SHA_1]: 'sha1',
  '2.16.840.1.101.3.4.2.1': 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};

/** Returns the names that responses may have for a certificate (CertID, RFC 6960 §4.1.1), as `textOfId` returns them. */
export function certificateIdsOf(certificate: IssuedCertificate): string[] {
  return Object.keys(HASHES).map(identifierFor(certificate)).map(textOfId);
}

/** Returns what a CertID says, as a text: the algorithm, the hashes of the issuer's name and key, and the number. */
export function textOfId({ hashAlgorithm, issuerNameHash, issuerKeyHash, serialNumber }: CertID): string {
  const fields = [issuerNameHash.buffer, issuerKeyHash.buffer, serialNumber];
  return [hashAlgorithm.algorithm, ...fields.map((field) => Buffer.from(field).toString('hex'))].join(' ');
}

/** Returns an OCSP request for a certificate (RFC 6960 §4.1), without a nonce: responders may answer with a response that is kept. */
export function ocspRequestFor(certificate: IssuedCertificate): Buffer {
  const requestList = [new Request({ reqCert: identifierFor(certificate)(SHA_1) })];
  return Buffer.from(AsnConvert.serialize(new OCSPRequest({ tbsRequest: new TBSRequest({ requestList }) })));
}

/** Returns the maker of the CertIDs of a certificate, for hash algorithms of `HASHES`. */
export function identifierFor({ leaf, issuer }: IssuedCertificate): (algorithm: string) => CertID {
  const { issuer: name, serialNumber } = AsnConvert.parse(leaf.raw, Certificate).tbsCertificate;
  const key = AsnConvert.parse(issuer.raw, Certificate).tbsCertificate.subjectPublicKeyInfo.subjectPublicKey;
  return (algorithm) => {
    const digest = (bytes: ArrayBuffer): OctetString =>
      new OctetString(
        createHash(HASHES[algorithm] as string)
          .update(Buffer.from(bytes))
          .digest(),
      );
    return new CertID({
      hashAlgorithm: new AlgorithmIdentifier({ algorithm, parameters: null }),
      issuerNameHash: digest(AsnConvert.serialize(name)),
      issuerKeyHash: digest(key),
      serialNumber,
    });
  };
}
