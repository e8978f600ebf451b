/**
 * Returns the name of a signature algorithm as C2PA and COSE write it (C2PA 2.2 §13.2, RFC 9864): the configuration says
 * `es256`, and the SDK `Es256`. `EdDSA` would not tell the curve. Browsers run this module too
 * (`scripts/console-modules.ts`), so it imports nothing.
 */
export function algorithmName(algorithm: string): string {
  return algorithm.toLowerCase() === 'ed25519' ? 'Ed25519' : algorithm.toUpperCase();
}
