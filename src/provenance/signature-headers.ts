import * as cborg from 'cborg';
import { type JumbfBox, onlyCbor, onlyChild } from './jumbf.ts';

/** The tag of a COSE_Sign1 structure (RFC 9052 §4.2). */
export const COSE_SIGN1_TAG = 18;
const MAX_SIGNATURE_BYTES = 1024 * 1024;

type Headers = ReadonlyMap<unknown, unknown>;

/** Returns the headers of a manifest's signature, those that it covers and the others. Throws an Error where it has none. */
export function signatureHeadersOf(manifest: JumbfBox | undefined): {
  readonly signed: Headers;
  readonly unsigned: Headers;
} {
  const { protectedBytes, unsigned } = signatureIn(manifest);
  const signed = decode(protectedBytes);
  if (!(signed instanceof Map)) throw new Error('the signature has no headers');
  return { signed, unsigned };
}

/** The signature of a manifest (COSE_Sign1, RFC 9052 §4.2). */
interface CoseSignature {
  /** The encoded headers that it covers. */
  readonly protectedBytes: Uint8Array;
  readonly unsigned: Map<unknown, unknown>;
  readonly payload: unknown;
  readonly value: unknown;
  /** The whole, as a part of the manifest. */
  readonly bytes: Uint8Array;
}

/** Returns the signature of a manifest. Throws an Error where it has none. */
export function signatureIn(manifest: JumbfBox | undefined): CoseSignature {
  const bytes = onlyCbor(onlyChild(manifest, 'c2pa.signature'));
  if (bytes === undefined || bytes.length > MAX_SIGNATURE_BYTES) throw new Error('there is no signature');
  const [protectedBytes, unsigned, payload, value] = decode(bytes) as [Uint8Array, unknown, unknown, unknown];
  if (!(unsigned instanceof Map)) throw new Error('the signature has no headers');
  return { protectedBytes, unsigned, payload, value, bytes };
}

function decode(bytes: Uint8Array): unknown {
  const tags: Record<number, (content: () => unknown) => unknown> = { [COSE_SIGN1_TAG]: (content) => content() };
  return cborg.decode(bytes, { useMaps: true, tags });
}
