/** The signature algorithms of C2PA 2.2 §13.2, by the names of the configuration. */
export const SIGNING_ALGORITHMS = ['es256', 'es384', 'es512', 'ps256', 'ps384', 'ps512', 'ed25519'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/**
 * A signing key, in this process or another, and its certificates.
 *
 * Obligations (test/provenance/signer-contract.ts runs them on every implementation):
 * - `sign` blocks the event loop for less than a millisecond, may be called concurrently, and settles in bounded time;
 * - signatures have the form that COSE requires (RFC 9053 §2, RFC 8230 §2): ECDSA as `r ‖ s`, PSS with a salt as long
 *   as the hash, always `signatureSizeBytes` long;
 * - neither the key nor a passphrase appears in an error;
 * - `close`, where there is one, gives back what the signer holds open of a device, and resolves when nothing is open any more.
 */
export interface Signer {
  readonly algorithm: SigningAlgorithm;
  /** DER, leaf first, each certified by the next; the root is left out (C2PA 2.2 §14.5). */
  readonly certificateChain: readonly Buffer[];
  readonly signatureSizeBytes: number;
  sign(data: Uint8Array): Promise<Buffer>;
  close?(): Promise<void>;
}

/** Covers COSE's headers and CBOR's heads, but for those of the certificates. */
const SIGNATURE_BOX_OVERHEAD_BYTES = 48;
const CERTIFICATE_OVERHEAD_BYTES = 3;
/**
 * The SDK fills the rest of the reserve with the header `pad` (C2PA 2.2 §10.4). It can add any number of bytes from
 * this one up to 65,542, but not fewer: the length of a shorter `pad` takes fewer bytes, and no second header makes
 * up for it.
 */
const MIN_PADDING_BYTES = 263;

/** Returns the number of bytes to reserve for a signature in the manifest, certificates and padding included. */
export function signatureReserveBytes({ certificateChain, signatureSizeBytes }: Signer): number {
  const chainBytes = certificateChain.reduce((sum, { length }) => sum + length + CERTIFICATE_OVERHEAD_BYTES, 0);
  return chainBytes + signatureSizeBytes + SIGNATURE_BOX_OVERHEAD_BYTES + MIN_PADDING_BYTES;
}
