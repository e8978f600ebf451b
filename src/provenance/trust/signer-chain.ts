import { X509Certificate } from 'node:crypto';
import * as cborg from 'cborg';
import { onlyCbor, onlyChild, parseJumbf } from '../jumbf.ts';

/** The COSE header that holds the certificates of the signer (RFC 9360), by number and, in older manifests, by name. */
const CHAIN_HEADERS = [33, 'x5chain'];
/** The tag of a COSE_Sign1 structure (RFC 9052 §4.2). */
const COSE_SIGN1_TAG = 18;
const MAX_CERTIFICATES = 16;
const MAX_SIGNATURE_BYTES = 1024 * 1024;

/** Returns the certificates in the signature of a store's active manifest, the signer's first; an empty list where they cannot be read. */
export function signerChainOf(store: Uint8Array): X509Certificate[] {
  const manifests = parseJumbf(Buffer.from(store.buffer, store.byteOffset, store.byteLength))?.children ?? [];
  const signature = onlyCbor(onlyChild(manifests.at(-1), 'c2pa.signature'));
  if (signature === undefined || signature.length > MAX_SIGNATURE_BYTES) return [];
  try {
    const [protectedBytes, unprotected] = decode(signature) as [Uint8Array, unknown];
    const found = [decode(protectedBytes), unprotected].flatMap((headers) =>
      headers instanceof Map ? CHAIN_HEADERS.map((name) => headers.get(name)) : [],
    );
    const chain = [found.find((value) => value !== undefined)].flat().slice(0, MAX_CERTIFICATES);
    return chain.filter((der) => der instanceof Uint8Array).map((der) => new X509Certificate(der));
  } catch {
    // What the reader trusts has a chain that can be read; of anything else no list is named.
    return [];
  }
}

function decode(bytes: Uint8Array): unknown {
  const tags: Record<number, (content: () => unknown) => unknown> = { [COSE_SIGN1_TAG]: (content) => content() };
  return cborg.decode(bytes, { useMaps: true, tags });
}
