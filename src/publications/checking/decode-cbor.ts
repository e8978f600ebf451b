import * as cborg from 'cborg';

/** Tags that say nothing about how a value is read: times and addresses as text (RFC 8949, §3.4). */
const TAGS = { 0: untagged, 32: untagged };

/** Longer CBOR is not decoded: a binding of 400,000 fragments takes 14 MB, and numbers take eight times their size. */
const CBOR_MAX_BYTES = 16 * 1024 * 1024;

/** Decodes CBOR strictly: undefined where it is malformed, too long, or says the same key twice. */
export function decodeCbor(encoded: Uint8Array | undefined): unknown {
  if (encoded === undefined || encoded.length > CBOR_MAX_BYTES) return undefined;
  try {
    return cborg.decode(encoded, { rejectDuplicateMapKeys: true, tags: TAGS });
  } catch {
    // Whoever asks says which file holds no readable CBOR.
    return undefined;
  }
}

function untagged(decode: () => unknown): unknown {
  return decode();
}
