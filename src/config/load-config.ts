import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import { AppError } from '#errors/app-error.ts';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { Config } from './config.ts';
import { configSchema } from './config-schema.ts';
import { type EnvironmentOverride, environmentOverrides } from './environment.ts';
import { firstNonUtf8 } from './first-non-utf8.ts';
import { problemsOf } from './problems.ts';

const DEFAULT_FILE = 'config/service.toml';

/** A table of the configuration before it has been validated. */
type RawTable = Record<string, unknown>;

/**
 * Reads the configuration: the file that `SERVICE_CONFIG_PATH` names, else `config/service.toml` where there is one,
 * overridden by `SERVICE__SECTION__KEY` variables, with defaults for the rest. Relative paths are taken from `cwd`.
 * Rejects with one AppError that lists every problem; values are never repeated, they may be secrets.
 */
export async function loadConfig({ env, cwd }: { env: NodeJS.ProcessEnv; cwd: string }): Promise<Config> {
  const { file, table } = await readTable(env, cwd);
  const overrides = environmentOverrides(env);
  const unreachable = overrides.filter((override) => !put(table, override));
  const result = configSchema.safeParse(table, { reportInput: true });
  const problems = [
    ...unreachable.map(({ variable }) => `${variable}: there is no such key`),
    ...(result.success ? [] : problemsOf(result.error, file, overrides)),
  ];
  if (!result.success || problems.length > 0) throw new AppError('CONFIG_INVALID', { problems });
  return withAbsolutePaths(result.data, cwd);
}

/** The configuration file that an environment asks for, as an absolute path; it need not exist. */
export function configFileOf({ env, cwd }: { env: NodeJS.ProcessEnv; cwd: string }): string {
  return resolve(cwd, env['SERVICE_CONFIG_PATH'] ?? DEFAULT_FILE);
}

async function readTable(env: NodeJS.ProcessEnv, cwd: string): Promise<{ file: string; table: RawTable }> {
  const named = env['SERVICE_CONFIG_PATH'];
  const file = configFileOf({ env, cwd });
  try {
    return { file, table: parse(textOf(await readFile(file), file)) };
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof TomlError) {
      // The rest of the error's message shows the lines around it, which may hold a secret.
      const [problem = ''] = cause.message.split('\n');
      throw new AppError('CONFIG_FILE_MALFORMED', { file, line: cause.line, column: cause.column, problem });
    }
    if (systemErrorCode(cause) === 'ENOENT' && named === undefined) return { file, table: {} };
    const details = { file, problem: problemOf(cause), named: named !== undefined };
    throw new AppError('CONFIG_FILE_UNREADABLE', details, { cause });
  }
}

/** TOML is UTF-8 (v1.0.0, "Preliminaries"); read as anything else, a passphrase would silently become another one. */
function textOf(bytes: Buffer, file: string): string {
  const place = firstNonUtf8(bytes);
  if (place === null) return bytes.toString('utf8');
  throw new AppError('CONFIG_FILE_MALFORMED', { file, ...place, problem: 'this is not UTF-8' });
}

/** Sets a value deep in a table; false where something that is no table is in the way. */
function put(table: RawTable, { path, value }: EnvironmentOverride): boolean {
  const [key, ...rest] = path;
  if (key === undefined || key === '') return false;
  if (rest.length === 0) {
    setOwn(table, key, value);
    return true;
  }
  if (!Object.hasOwn(table, key)) setOwn(table, key, {});
  const inner = table[key];
  return isTable(inner) && put(inner, { variable: '', path: rest, value });
}

/** Defines the property, so that a key named `__proto__` is a key like any other. */
function setOwn(table: RawTable, key: string, value: unknown): void {
  Object.defineProperty(table, key, { value, enumerable: true, configurable: true, writable: true });
}

function isTable(value: unknown): value is RawTable {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

function withAbsolutePaths(config: ReturnType<typeof configSchema.parse>, cwd: string): Config {
  const absolute = (path: string): string => resolve(cwd, path);
  const { jobs, signing, input_resolvers: inputs, output_sinks: outputs } = config;
  const dataDir = absolute(jobs.data_dir);
  return {
    ...config,
    jobs: { ...jobs, data_dir: dataDir, scratch_dir: absolute(jobs.scratch_dir ?? join(dataDir, 'scratch')) },
    signing: {
      ...signing,
      ...(signing.certificate_path !== undefined && { certificate_path: absolute(signing.certificate_path) }),
      ...(signing.private_key_path !== undefined && { private_key_path: absolute(signing.private_key_path) }),
    },
    input_resolvers: {
      ...inputs,
      local: inputs.local.roots === undefined ? {} : { roots: inputs.local.roots.map(absolute) },
    },
    output_sinks: { ...outputs, local: { ...outputs.local, base_dir: absolute(outputs.local.base_dir) } },
  };
}
