import { type DerElement, onlyElement, readElements, TAG, timeOf } from './der.ts';

/** A signed OCSP response (BasicOCSPResponse, RFC 6960 §4.2.1). */
export interface OcspResponse {
  /** The bytes that are signed. */
  readonly signedBytes: Buffer;
  /** The object identifier of the algorithm in DER, in hexadecimal digits. */
  readonly algorithm: string;
  readonly signature: Buffer;
  /** Certificates in DER; that of the responder, where it is not the issuer itself. */
  readonly certificates: readonly Buffer[];
  readonly statuses: readonly CertificateStatus[];
}

/** The status of a certificate in a response. */
interface CertificateStatus {
  /** The object identifier of the hash algorithm, as in `OcspResponse.algorithm`. */
  readonly hash: string;
  /** The certificate, as `certificateIdFields` returns it. */
  readonly certificate: Buffer;
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

/** Why responders give no response (RFC 6960 §4.2.1), by their codes. */
const REFUSALS: Readonly<Record<number, string>> = {
  1: 'malformedRequest',
  2: 'internalError',
  3: 'tryLater',
  5: 'sigRequired',
  6: 'unauthorized',
};

const BASIC_RESPONSE = '06092b0601050507300101';

/** Contexts of elements that may be missing. */
const CONTEXT_0 = 0xa0;
const VERSION = 0xa0;

/** Reads a response (OCSPResponse). Throws an Error that says what is wrong with it. */
export function readOcspResponse(bytes: Uint8Array): OcspResponse {
  if (bytes.length > MAX_RESPONSE_BYTES) throw new Error(`it has more than ${MAX_RESPONSE_BYTES} bytes`);
  const basic = basicResponseIn(bytes);
  try {
    return readBasic(basic);
  } catch {
    throw new Error('it is no OCSP response');
  }
}

function basicResponseIn(bytes: Uint8Array): Buffer {
  let refusal: number | undefined;
  try {
    const [status, wrapped] = readElements(onlyElement(bytes, TAG.sequence).content);
    if (status?.tag === TAG.enumerated && status.content[0] !== 0) refusal = status.content[0];
    else if (wrapped?.tag === CONTEXT_0) {
      const [type, response] = readElements(onlyElement(wrapped.content, TAG.sequence).content);
      if (type?.whole.toString('hex') === BASIC_RESPONSE && response?.tag === TAG.octets) return response.content;
    }
  } catch {
    // It is none.
  }
  if (refusal === undefined) throw new Error('it is no OCSP response');
  throw new Error(`the responder gives none (${REFUSALS[refusal] ?? refusal})`);
}

function readBasic(bytes: Buffer): OcspResponse {
  const [signed, algorithm, signature, certificates] = readElements(onlyElement(bytes, TAG.sequence).content);
  const fields = readElements(defined(signed).content);
  const [, , statuses] = fields[0]?.tag === VERSION ? fields.slice(1) : fields;
  return {
    signedBytes: defined(signed).whole,
    algorithm: identifierIn(defined(algorithm)),
    signature: defined(signature).content.subarray(1),
    certificates:
      certificates === undefined
        ? []
        : readElements(onlyElement(certificates.content, TAG.sequence).content)
            .slice(0, MAX_CERTIFICATES)
            .map(({ whole }) => whole),
    statuses: readElements(defined(statuses).content).map(readStatus),
  };
}

const STATUSES: Readonly<Record<number, CertificateStatus['status']>> = { 128: 'good', 161: 'revoked', 130: 'unknown' };

function readStatus({ content }: DerElement): CertificateStatus {
  const [id, status, from, next] = readElements(content);
  const thisUpdate = timeOf(defined(from));
  const [hash, ...certificate] = readElements(defined(id).content);
  const [revokedAt] = status?.tag === 0xa1 ? readElements(status.content) : [];
  return {
    hash: identifierIn(defined(hash)),
    certificate: Buffer.concat(certificate.map(({ whole }) => whole)),
    status: defined(STATUSES[defined(status).tag]),
    revokedAt: revokedAt === undefined ? null : timeOf(revokedAt),
    thisUpdate,
    nextUpdate:
      next?.tag === CONTEXT_0
        ? timeOf(defined(readElements(next.content)[0]))
        : new Date(thisUpdate.getTime() + DEFAULT_PERIOD_MS),
  };
}

/** Returns the object identifier of an algorithm. */
function identifierIn({ content }: DerElement): string {
  return defined(readElements(content)[0]).whole.toString('hex');
}

function defined<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('an element is missing');
  return value;
}
