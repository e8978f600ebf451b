import type { z } from 'zod';
import type { configSchema } from './config-schema.ts';

type DeepReadonly<T> = T extends readonly (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

/**
 * The service's configuration, validated, with every default filled in and every path absolute. Plain data: it crosses
 * to the workers. The keys and their meaning are in `config-schema.ts` and, for people, in `config/service.toml`.
 */
export type Config = DeepReadonly<z.output<typeof configSchema>> & {
  /** Filled in by `loadConfig` from `jobs.data_dir` where it is not set. */
  readonly jobs: { readonly scratch_dir: string };
};

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
