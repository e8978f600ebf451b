import type { Config } from '#config/config.ts';
import { loadConfiguredIdentity } from './configured-identity.ts';
import { loadDevelopmentIdentity } from './development-identity.ts';
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

/**
 * Loads the configured identity, else the development identity under the data folder, which is made where it is missing
 * or about to expire. Rejects with an AppError that names the file, what is wrong with it, and the remedy.
 */
export function loadSigningIdentity(signing: Config['signing'], dataDir: string): Promise<SigningIdentity> {
  const { certificate_path: certificatePath, private_key_path: privateKeyPath } = signing;
  if (certificatePath === undefined || privateKeyPath === undefined) return loadDevelopmentIdentity(dataDir);
  return loadConfiguredIdentity({
    certificatePath,
    privateKeyPath,
    passphrase: signing.private_key_passphrase,
    algorithm: signing.algorithm,
  });
}
