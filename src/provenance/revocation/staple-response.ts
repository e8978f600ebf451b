import assert from 'node:assert';
import * as cborg from 'cborg';
import { onlyCbor, onlyChild, parseJumbf } from '../jumbf.ts';

// The SDK cannot staple OCSP responses (c2pa-rs#2193). The headers `pad` and `rVals` of a COSE_Sign1 are both left out of what is
// signed (C2PA 2.2 §13.2, §10.4), so one takes bytes of the other after the signature was made.

/** The tag of a COSE_Sign1 structure (RFC 9052 §4.2). */
const COSE_SIGN1_TAG = 18;

/** Returns the size that a stapled response takes in the header of a signature. */
export function stapleBytes(response: Uint8Array | null): number {
  return response === null ? 0 : cborg.encode({ rVals: { ocspVals: [response] } }).length - 1;
}

/**
 * Staples an OCSP response to the signature of the active manifest of a store, whose `pad` has to be longer than it by 256 bytes. The
 * size of the store and all that is signed stay as they are.
 */
export function stapleResponse(store: Buffer, response: Uint8Array): Buffer {
  const signature = onlyCbor(onlyChild(parseJumbf(store)?.children.at(-1), 'c2pa.signature'));
  assert(signature !== undefined, 'a manifest that was signed has a signature');
  const tags = { [COSE_SIGN1_TAG]: (content: () => unknown) => content() };
  const [signedHeaders, headers, payload, value] = cborg.decode(signature, { useMaps: true, tags }) as [
    Uint8Array,
    Map<unknown, unknown>,
    null,
    Uint8Array,
  ];
  const pad = headers.get('pad');
  assert(pad instanceof Uint8Array, 'a signature with space for a response has padding');
  headers.set('pad', new Uint8Array(pad.length - stapleBytes(response)));
  headers.set('rVals', new Map([['ocspVals', [response]]]));
  const stapled = cborg.encode(new cborg.Tagged(COSE_SIGN1_TAG, [signedHeaders, headers, payload, value]));
  assert.equal(stapled.length, signature.length, 'a signature with a response is as long as without');
  signature.set(stapled);
  return store;
}
