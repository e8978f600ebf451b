import { authorityProblem, postBounded } from '../bounded-post.ts';
import { type IssuedCertificate, ocspRequestFor } from './certificate-id.ts';
import { MAX_RESPONSE_BYTES } from './ocsp-response.ts';

/** Limits the time of one response, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** The OCSP address in the authority information access of a certificate (RFC 5280 §4.2.2.1), as Node shows it. */
const OCSP_ADDRESS = /^OCSP - URI:(https?:\/\/\S+)$/m;

/** Asks the responder that a certificate names for a response, which nobody has judged. Throws an Error that says why there is none. */
export async function askResponder(certificate: IssuedCertificate, signal: AbortSignal): Promise<Buffer> {
  const url = OCSP_ADDRESS.exec(certificate.leaf.infoAccess ?? '')?.[1];
  if (url === undefined) throw new Error('the certificate names no OCSP responder');
  try {
    const { bytes } = await postBounded({
      url,
      body: ocspRequestFor(certificate),
      contentType: 'application/ocsp-request',
      accept: 'application/ocsp-response',
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    return bytes;
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error(`the responder ${new URL(url).host} ${authorityProblem(cause)}`, { cause });
  }
}
