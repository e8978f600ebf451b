/** The signature algorithms of C2PA 2.2 §13.2, by the names of the configuration. */
export const SIGNING_ALGORITHMS = ['es256', 'es384', 'es512', 'ps256', 'ps384', 'ps512', 'ed25519'] as const;
export type SigningAlgorithm = (typeof SIGNING_ALGORITHMS)[number];

/**
 * Holds a signing key, wherever that is, and the certificates that go with it.
 *
 * Obligations (test/provenance/signer-contract.ts runs them on every implementation):
 * - `sign` holds up the event loop for less than a millisecond, may be called concurrently, and settles in bounded time;
 * - signatures are what COSE wants (RFC 9053 §2, RFC 8230 §2): ECDSA as `r ‖ s`, PSS with a salt as long as the hash,
 *   always `signatureSizeBytes` long;
 * - neither the key nor a passphrase appears in an error.
 */
export interface Signer {
  readonly algorithm: SigningAlgorithm;
  /** DER, leaf first, each certified by the next; the root is left out (C2PA 2.2 §14.5). */
  readonly certificateChain: readonly Buffer[];
  readonly signatureSizeBytes: number;
  sign(data: Uint8Array): Promise<Buffer>;
}

/** COSE headers, CBOR framing, and the padding that the SDK fills the reserve with. */
const SIGNATURE_BOX_OVERHEAD_BYTES = 768;

/** How much room a signature takes in the manifest, certificates included, in bytes. */
export function signatureReserveBytes({ certificateChain, signatureSizeBytes }: Signer): number {
  const chainBytes = certificateChain.reduce((total, certificate) => total + certificate.length, 0);
  return chainBytes + signatureSizeBytes + SIGNATURE_BOX_OVERHEAD_BYTES;
}
