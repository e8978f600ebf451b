import type { Config } from './config.ts';
import { identityPaths } from './identities.ts';

/** Stands for the address of the database, which holds a password: a worker needs to know only that there is one. */
const WITHHELD_DATABASE_URL = 'postgres://withheld';

/** Returns the configuration as processes get it that work on media: without tokens, the settings of signers and the like. */
export function withoutSecrets(config: Config): Config {
  const { certificate_path: _, private_key_path: __, private_key_passphrase: ___, ...signing } = config.signing;
  const { database_url: databaseUrl, ...jobs } = config.jobs;
  return {
    ...config,
    auth: { tokens: [], callers: {} },
    callbacks: {},
    telemetry: {},
    signing: { ...signing, identities: {} },
    protected_files: identityPaths(config),
    jobs: { ...jobs, ...(databaseUrl !== undefined && { database_url: WITHHELD_DATABASE_URL }) },
  };
}
