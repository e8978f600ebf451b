import type { Config } from './config.ts';

/** Stands for the address of the database, which holds a password: a worker needs to know only that there is one. */
const WITHHELD_DATABASE_URL = 'postgres://withheld';

/** Returns the configuration as processes get it that work on media: without tokens, passphrase and the like. */
export function withoutSecrets(config: Config): Config {
  const { private_key_passphrase: _, ...signing } = config.signing;
  const { database_url: databaseUrl, ...jobs } = config.jobs;
  return {
    ...config,
    auth: { ...config.auth, tokens: [] },
    callbacks: {},
    telemetry: {},
    signing,
    jobs: { ...jobs, ...(databaseUrl !== undefined && { database_url: WITHHELD_DATABASE_URL }) },
  };
}
