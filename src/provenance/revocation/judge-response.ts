import { verify, X509Certificate } from 'node:crypto';
import { EXTENDED_KEY_USAGE } from '../identity/certificate-profile.ts';
import { certificateIdsOf, type IssuedCertificate, type OcspResponse, readOcspResponse } from './ocsp-messages.ts';

/** The word of a responder about a certificate, or that there is none that can be used. */
export type CertificateState =
  | {
      readonly status: 'good' | 'unknown';
      readonly thisUpdate: Date;
      readonly nextUpdate: Date;
    }
  | { readonly status: 'revoked'; readonly revokedAt: Date; readonly thisUpdate: Date }
  /** `problem` ends a sentence about the response. */
  | { readonly status: 'none'; readonly problem: string };

/** Clocks differ by this at most, in milliseconds. */
const CLOCK_TOLERANCE_MS = 5 * 60_000;

/** Signature algorithms of responders by their object identifiers, with the hash that the message is signed by. */
const SIGNATURES: ReadonlyMap<string, string | null> = new Map(
  Object.entries({
    '1.2.840.10045.4.3.2': 'sha256',
    '1.2.840.10045.4.3.3': 'sha384',
    '1.2.840.10045.4.3.4': 'sha512',
    '1.2.840.113549.1.1.11': 'sha256',
    '1.2.840.113549.1.1.12': 'sha384',
    '1.2.840.113549.1.1.13': 'sha512',
    // Ed25519 has a hash of its own.
    '1.3.101.112': null,
  }),
);

/**
 * Judges a response about a certificate at a time: now, or that of a trusted time-stamp. A certificate that was revoked later than
 * that was good. A response that lies, or is of another time, counts as none.
 */
export function judgeResponse(bytes: Uint8Array, certificate: IssuedCertificate, at: Date): CertificateState {
  try {
    return judged(readOcspResponse(bytes), certificate, at);
  } catch (error) {
    return { status: 'none', problem: (error as Error).message };
  }
}

function judged(response: OcspResponse, certificate: IssuedCertificate, at: Date): CertificateState {
  const ids = certificateIdsOf(certificate);
  const own = response.statuses.filter((each) => ids.includes(each.certificate));
  const found = own.find(({ status }) => status === 'revoked') ?? own[0];
  if (found === undefined) return none('it is about another certificate');
  const { status, thisUpdate, nextUpdate, revokedAt } = found;
  // Nobody takes a revocation back, so that one counts at any time after it.
  const usedAt = status === 'revoked' || thisUpdate > at ? thisUpdate : at;
  const problem = problemOfSignature(response, certificate.issuer, usedAt);
  if (problem !== null) return none(problem);
  if (thisUpdate.getTime() > Date.now() + CLOCK_TOLERANCE_MS) return none(`it is of the future (${iso(thisUpdate)})`);
  if (status === 'revoked') {
    const since = revokedAt ?? thisUpdate;
    return since > at ? { status: 'good', thisUpdate, nextUpdate } : { status, revokedAt: since, thisUpdate };
  }
  return nextUpdate < usedAt ? none(`it ended on ${iso(nextUpdate)}`) : { status, thisUpdate, nextUpdate };
}

function problemOfSignature(response: OcspResponse, issuer: X509Certificate, usedAt: Date): string | null {
  const { algorithm, signedBytes, signature } = response;
  const hash = SIGNATURES.get(algorithm);
  if (hash === undefined) return 'it is signed by an algorithm that is not known here';
  const signers = [issuer, ...response.certificates.flatMap((der) => responderIn(der, issuer, usedAt))];
  return signers.some(({ publicKey }) => isSignedBy(publicKey))
    ? null
    : 'it is not signed by the issuer or a responder of it';

  function isSignedBy(key: X509Certificate['publicKey']): boolean {
    try {
      return verify(hash, signedBytes, key, signature);
    } catch {
      // The key is of another kind.
      return false;
    }
  }
}

/** Returns the certificate of a responder to which the issuer gave the task (RFC 6960 §4.2.2.2); none where it is anything else. */
function responderIn(der: Buffer, issuer: X509Certificate, at: Date): X509Certificate[] {
  try {
    const certificate = new X509Certificate(der);
    const isAppointed =
      certificate.keyUsage?.includes(EXTENDED_KEY_USAGE.ocspSigning) &&
      certificate.checkIssued(issuer) &&
      certificate.verify(issuer.publicKey);
    return isAppointed && certificate.validFromDate <= at && at <= certificate.validToDate ? [certificate] : [];
  } catch {
    return [];
  }
}

function none(problem: string): CertificateState {
  return { status: 'none', problem };
}

function iso(time: Date): string {
  return time.toISOString();
}
