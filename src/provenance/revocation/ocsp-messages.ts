import { hash, type X509Certificate } from 'node:crypto';
import {
  BasicOCSPResponse,
  CertID,
  id_pkix_ocsp_basic,
  OCSPRequest,
  OCSPResponse,
  OCSPResponseStatus,
  Request,
  type SingleResponse,
  TBSRequest,
} from '@peculiar/asn1-ocsp';
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
const HASHES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    [SHA_1]: 'sha1',
    '2.16.840.1.101.3.4.2.1': 'sha256',
    '2.16.840.1.101.3.4.2.2': 'sha384',
    '2.16.840.1.101.3.4.2.3': 'sha512',
  }),
);

/** Returns the names that responses may have for a certificate (CertID, RFC 6960 §4.1.1), as `textOfId` returns them. */
export function certificateIdsOf(certificate: IssuedCertificate): string[] {
  return [...HASHES.keys()].map(identifierFor(certificate)).map(textOfId);
}

/** Returns what a CertID says, as a text: the algorithm, the hashes of the issuer's name and key, and the number. */
function textOfId({ hashAlgorithm, issuerNameHash, issuerKeyHash, serialNumber }: CertID): string {
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
    const digest = (bytes: ArrayBuffer) =>
      new OctetString(hash(HASHES.get(algorithm) as string, Buffer.from(bytes), 'buffer'));
    return new CertID({
      hashAlgorithm: new AlgorithmIdentifier({ algorithm, parameters: null }),
      issuerNameHash: digest(AsnConvert.serialize(name)),
      issuerKeyHash: digest(key),
      serialNumber,
    });
  };
}

/** A signed OCSP response (BasicOCSPResponse, RFC 6960 §4.2.1). */
export interface OcspResponse {
  /** The bytes that are signed. */
  readonly signedBytes: Buffer;
  /** The object identifier of the algorithm. */
  readonly algorithm: string;
  readonly signature: Buffer;
  /** Certificates in DER; that of the responder, where it is not the issuer itself. */
  readonly certificates: readonly Buffer[];
  readonly statuses: readonly CertificateStatus[];
}

/** The status of a certificate in a response. */
interface CertificateStatus {
  /** The certificate, as `textOfId` returns it. */
  readonly certificate: string;
  readonly status: 'good' | 'revoked' | 'unknown';
  /** Null unless it is revoked. */
  readonly revokedAt: Date | null;
  readonly thisUpdate: Date;
  readonly nextUpdate: Date;
}

/** Limits a response, here and in files: those of public authorities have 0.3 to 3 kB, certificates included. */
export const MAX_RESPONSE_BYTES = 16 * 1024;
const MAX_CERTIFICATES = 4;
/** The time that a response is good for which names no end: newer information is available at any time (RFC 6960 §4.2.2.1). */
const DEFAULT_PERIOD_MS = 24 * 60 * 60_000;

const NO_RESPONSE = 'it is no OCSP response';

/** Reads a response (OCSPResponse). Throws an Error that says what is wrong with it. */
export function readOcspResponse(bytes: Uint8Array): OcspResponse {
  if (bytes.length > MAX_RESPONSE_BYTES) throw new Error(`it has more than ${MAX_RESPONSE_BYTES} bytes`);
  const { responseStatus: status, responseBytes } = parse(bytes, OCSPResponse);
  if (status !== OCSPResponseStatus.successful) {
    throw new Error(`the responder gives none (${OCSPResponseStatus[status] ?? status})`);
  }
  if (responseBytes?.responseType !== id_pkix_ocsp_basic) throw new Error(NO_RESPONSE);
  return describe(parse(new Uint8Array(responseBytes.response.buffer), BasicOCSPResponse));
}

function parse<T extends object>(bytes: Uint8Array, type: new () => T): T {
  try {
    const value = AsnConvert.parse(bytes, type);
    // The library takes more than DER, as a 13th month for another one, and passes over what follows the element.
    if (derOf(value).equals(bytes)) return value;
  } catch {
    // Its reasons say nothing that an operator could use.
  }
  throw new Error(NO_RESPONSE);
}

function describe(basic: BasicOCSPResponse): OcspResponse {
  const { tbsResponseData, tbsResponseDataRaw = new ArrayBuffer(), signatureAlgorithm, signature, certs = [] } = basic;
  return {
    signedBytes: Buffer.from(tbsResponseDataRaw),
    algorithm: signatureAlgorithm.algorithm,
    signature: Buffer.from(signature),
    certificates: certs.slice(0, MAX_CERTIFICATES).map(derOf),
    statuses: tbsResponseData.responses.map(statusIn),
  };
}

function derOf(value: object): Buffer {
  return Buffer.from(AsnConvert.serialize(value));
}

function statusIn({ certID, certStatus, thisUpdate, nextUpdate }: SingleResponse): CertificateStatus {
  const { revoked, good } = certStatus;
  return {
    certificate: textOfId(certID),
    status: revoked !== undefined ? 'revoked' : good === null ? 'good' : 'unknown',
    revokedAt: revoked?.revocationTime ?? null,
    thisUpdate,
    nextUpdate: nextUpdate ?? new Date(thisUpdate.getTime() + DEFAULT_PERIOD_MS),
  };
}
