import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import { Signers } from './signers.ts';
import type { CredentialDescription } from './signing-identity.ts';
import type { TrustSource } from './trust-lists.ts';

/** Loads an identity of the configuration, by its name, and signs once with it, as the start of the service does; logs the same warnings. */
export async function checkConfiguredIdentity(
  name: string,
  { config, trust, log }: { readonly config: Config; readonly trust: TrustSource; readonly log: Log },
): Promise<{ readonly credential?: CredentialDescription; readonly problems: readonly string[] }> {
  try {
    const signers = await Signers.start({ config: withOnly(name, config), launcher: new Launcher(), trust, log });
    signers.close();
    const credential = signers.identityOf(name);
    return { ...(credential && { credential }), problems: [] };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { problems = [error.message] } = error.details as { readonly problems?: readonly string[] };
    return { problems };
  }
}

/** Returns the configuration without the other identities. */
function withOnly(name: string, config: Config): Config {
  const identity = config.signing.identities[name];
  const identities = identity === undefined ? {} : { [name]: identity };
  return { ...config, signing: { ...config.signing, identities } };
}
