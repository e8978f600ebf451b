import { X509Certificate } from 'node:crypto';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { type CredentialDescription, issuedOf } from '../signing-identity.ts';
import type { TrustSource } from '../trust-lists.ts';
import type { IssuedCertificate } from './ocsp-messages.ts';

/** The OCSP address in the authority information access of a certificate (RFC 5280 §4.2.2.1), as Node shows it. */
const OCSP_ADDRESS = /^OCSP - URI:(https?:\/\/\S+)$/m;

/** A certificate that a responder can be asked about. */
export interface Answerable {
  readonly certificate: IssuedCertificate;
  readonly url: string;
}

/** Says why no responder can be asked about a certificate. */
export interface Unanswerable {
  readonly problem: string;
  readonly remedy: string;
}

/** Finds what it takes to ask the responder of the first certificate of a chain in DER. */
export function responderOf(chain: readonly Buffer[], trust: TrustSource): Answerable | Unanswerable {
  const certificates = chain.map((der) => new X509Certificate(der));
  const [leaf] = certificates;
  const url = OCSP_ADDRESS.exec(leaf?.infoAccess ?? '')?.[1];
  if (leaf === undefined || url === undefined) {
    return {
      problem: 'the certificate names no OCSP responder',
      remedy: 'Have it issued with the address of a responder, or set signing.ocsp to "off".',
    };
  }
  const issuer = trust.current.issuerOf(certificates);
  if (issuer !== null) return { certificate: { leaf, issuer }, url };
  return {
    problem: "the issuer's certificate is neither in the identity's file nor in trust.anchors",
    remedy: "Append it to the identity's file.",
  };
}

/** Throws `OCSP_IMPOSSIBLE` for a credential that would never get a response, where nothing is signed without one. */
export function requireResponder(
  credential: CredentialDescription,
  { config, trust }: { readonly config: Pick<Config, 'signing'>; readonly trust: TrustSource },
): void {
  if (config.signing.ocsp !== 'require') return;
  const found = responderOf(issuedOf(credential), trust);
  if ('problem' in found) throw new AppError('OCSP_IMPOSSIBLE', { file: credential.file, ...found });
}
