import * as cborg from 'cborg';
import { type JumbfBox, onlyCbor, onlyChild } from './jumbf.ts';

/** The tag of a COSE_Sign1 structure (RFC 9052 §4.2). */
const COSE_SIGN1_TAG = 18;
const MAX_SIGNATURE_BYTES = 1024 * 1024;

type Headers = ReadonlyMap<unknown, unknown>;

/** Returns the headers of a manifest's signature, those that it covers and the others. Throws an Error where it has none. */
export function signatureHeadersOf(manifest: JumbfBox | undefined): {
  readonly signed: Headers;
  readonly unsigned: Headers;
} {
  const signature = onlyCbor(onlyChild(manifest, 'c2pa.signature'));
  if (signature === undefined || signature.length > MAX_SIGNATURE_BYTES) throw new Error('there is no signature');
  const [protectedBytes, unsigned] = decode(signature) as [Uint8Array, unknown];
  const signed = decode(protectedBytes);
  if (!(signed instanceof Map && unsigned instanceof Map)) throw new Error('the signature has no headers');
  return { signed, unsigned };
}

function decode(bytes: Uint8Array): unknown {
  const tags: Record<number, (content: () => unknown) => unknown> = { [COSE_SIGN1_TAG]: (content) => content() };
  return cborg.decode(bytes, { useMaps: true, tags });
}
