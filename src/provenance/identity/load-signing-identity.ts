import type { Config } from '#config/config.ts';
import { loadConfiguredIdentity } from './configured-identity.ts';
import { loadDevelopmentIdentity } from './development-identity.ts';
import type { SigningIdentity } from './signing-identity.ts';

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
