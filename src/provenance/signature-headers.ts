import * as cborg from 'cborg';
import { type JumbfBox, onlyCbor, onlyChild } from './jumbf.ts';

/** The tag of a COSE_Sign1 structure (RFC 9052 §4.2). */
export const COSE_SIGN1_TAG = 18;
const MAX_SIGNATURE_BYTES = 1024 * 1024;

/** The signature of a manifest (COSE_Sign1, RFC 9052 §4.2). */
interface CoseSignature {
  /** The headers that it covers, decoded and as they are encoded. */
  readonly signed: ReadonlyMap<unknown, unknown>;
  readonly protectedBytes: Uint8Array;
  readonly unsigned: ReadonlyMap<unknown, unknown>;
  readonly payload: unknown;
  readonly value: unknown;
  /** The whole, as a part of the manifest. */
  readonly bytes: Uint8Array;
}

/** Returns the signature of a manifest. Throws an Error where it has none, or one without headers. */
export function signatureIn(manifest: JumbfBox | undefined): CoseSignature {
  const bytes = onlyCbor(onlyChild(manifest, 'c2pa.signature'));
  if (bytes === undefined || bytes.length > MAX_SIGNATURE_BYTES) throw new Error('there is no signature');
  const [protectedBytes, unsigned, payload, value] = decode(bytes) as [Uint8Array, unknown, unknown, unknown];
  const signed = decode(protectedBytes);
  if (!(signed instanceof Map && unsigned instanceof Map)) throw new Error('the signature has no headers');
  return { signed, protectedBytes, unsigned, payload, value, bytes };
}

function decode(bytes: Uint8Array): unknown {
  const tags: Record<number, (content: () => unknown) => unknown> = { [COSE_SIGN1_TAG]: (content) => content() };
  return cborg.decode(bytes, { useMaps: true, tags });
}
