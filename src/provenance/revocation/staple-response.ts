import assert from 'node:assert';
import * as cborg from 'cborg';
import { parseJumbf } from '../jumbf.ts';
import { COSE_SIGN1_TAG, signatureIn } from '../signature-headers.ts';

// The SDK cannot staple OCSP responses (c2pa-rs#2193). The headers `pad` and `rVals` of a COSE_Sign1 are both left out of what is
// signed (C2PA 2.2 §13.2, §10.4), so one takes bytes of the other after the signature was made.

/** Returns the size that a stapled response takes in the header of a signature. */
export function stapleBytes(response: Uint8Array): number {
  return cborg.encode({ rVals: { ocspVals: [response] } }).length - 1;
}

/**
 * Staples an OCSP response to the signature of the active manifest of a store, whose `pad` has to be longer than it by 256 bytes. The
 * size of the store and all that is signed stay as they are.
 */
export function stapleResponse(store: Buffer, response: Uint8Array): Buffer {
  const { protectedBytes, unsigned, payload, value, bytes } = signatureIn(parseJumbf(store)?.children.at(-1));
  const pad = unsigned.get('pad');
  assert(pad instanceof Uint8Array, 'a signature with space for a response has padding');
  const headers = new Map(unsigned).set('rVals', { ocspVals: [response] });
  headers.set('pad', new Uint8Array(pad.length - stapleBytes(response)));
  const stapled = cborg.encode(new cborg.Tagged(COSE_SIGN1_TAG, [protectedBytes, headers, payload, value]));
  assert.equal(stapled.length, bytes.length, 'a signature with a response is as long as without');
  bytes.set(stapled);
  return store;
}
