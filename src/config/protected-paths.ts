import { join } from 'node:path';
import type { Config } from './config.ts';
import { identityPaths } from './identities.ts';

/**
 * Returns the folder of the records of committed publications. Nodes that share outputs share these records
 * beside the outputs.
 */
export function recordsDirOf({ jobs, output_sinks: { local } }: Config): string {
  return jobs.database_url === undefined ? jobs.data_dir : join(local.base_dir, '.attestream');
}

/** Returns the folders that input workers write: outputs, the journal, and the scratch space. */
export function writableFolders({ jobs, output_sinks: { local } }: Config): readonly string[] {
  return [local.base_dir, jobs.data_dir, jobs.scratch_dir];
}

/** Returns the file of the embedded job store. SQLite keeps two more beside it while it is open. */
export function databaseFileOf(dataDir: string): string {
  return join(dataDir, 'jobs.sqlite');
}

/**
 * Returns the paths that workers cannot read: the files of identities, which the signer reads, the configuration, and the job
 * store, which holds what other callers asked for.
 */
export function secretPaths(config: Config, configFile: string): readonly string[] {
  const { data_dir: dataDir } = config.jobs;
  const database = databaseFileOf(dataDir);
  const store = ['', '-wal', '-shm'].map((suffix) => database + suffix);
  return [...identityPaths(config), join(dataDir, 'identity'), join(dataDir, 'signers'), configFile, ...store];
}

/**
 * Returns the files and folders of the service itself, which no request reads and no output is written to. They
 * need not exist.
 */
export function protectedPaths(config: Config, configFile: string): readonly string[] {
  const { jobs, protected_files: files = identityPaths(config) } = config;
  return [jobs.data_dir, jobs.scratch_dir, recordsDirOf(config), ...files, configFile];
}

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
