import type { Signer } from './signer.ts';

/** Who signs: a key with its certificates, checked against the certificate profile of C2PA. */
export interface SigningIdentity {
  readonly signer: Signer;
  /** `development` identities are made by the service for itself; nobody has a reason to trust them. */
  readonly kind: 'configured' | 'development';
  /** The subject of the leaf certificate, and when it expires. */
  readonly subject: string;
  readonly notAfter: Date;
  /** Where the certificates were read from. */
  readonly file: string;
}
