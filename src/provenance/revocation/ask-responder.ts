import { authorityProblem, postBounded } from '../bounded-post.ts';
import { ocspRequestFor } from './certificate-id.ts';
import { MAX_RESPONSE_BYTES } from './ocsp-response.ts';
import type { Answerable } from './responder-of.ts';

/** Limits the time of one response, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** Asks the responder that a certificate names for a response, which nobody has judged. Throws an Error that says why there is none. */
export async function askResponder({ certificate, url }: Answerable, signal: AbortSignal): Promise<Buffer> {
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
