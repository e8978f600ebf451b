import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parse, TomlError } from 'smol-toml';
import type { z } from 'zod';
import { TYPE_NAMES } from '#contract/validate.ts';
import { AppError } from '#errors/app-error.ts';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';
import type { Config } from './config.ts';
import { type ConfigSurroundings, configFileOf } from './config-file.ts';
import { configSchema, type KeySchema, keySchemas, schemaOf } from './config-schema.ts';
import { nearestKey } from './nearest-key.ts';

/** A table of the configuration before it has been validated. */
type RawTable = Record<string, unknown>;

/**
 * Reads the configuration: the file that `SERVICE_CONFIG_PATH` names, else `config/service.toml` where there is one,
 * overridden by `SERVICE__SECTION__KEY` variables, with defaults for the rest. Relative paths are taken from `cwd`.
 * Rejects with one AppError that lists every problem; values are never repeated, they may be secrets.
 */
export async function loadConfig(sources: ConfigSources = {}): Promise<Config> {
  return (await loadWithOrigins(sources)).config;
}

interface ConfigSources extends ConfigSurroundings {
  /** Names for variables in messages: those of options that stand for them. */
  readonly names?: Readonly<Record<string, string>>;
}

/** Returns where the value of a key comes from: a variable, a line of the file (`file:line`), the file, or `default`. */
type OriginOfKey = (key: string) => string;

/** Does what `loadConfig` does, and tells where values come from. */
export async function loadWithOrigins({
  env = process.env,
  cwd = process.cwd(),
  names = {},
}: ConfigSources): Promise<{ readonly config: Config; readonly originOf: OriginOfKey }> {
  const { file, table, text } = await readTable(env, cwd);
  const inFile = structuredClone(table);
  const overrides = environmentOverrides(env).map((override) => ({
    ...override,
    variable: names[override.variable] ?? override.variable,
  }));
  const unreachable = overrides.filter((override) => !put(table, override));
  const result = configSchema.safeParse(table, { reportInput: true });
  const problems = [
    ...unreachable.map(({ variable, path }) => `${variable}: ${noSuchKey(path)}`),
    ...(result.success ? [] : problemsOf(result.error, file, overrides)),
  ];
  if (!result.success || problems.length > 0) throw new AppError('CONFIG_INVALID', { problems });
  const originOf = (key: string): string => {
    const path = key.split('.');
    const variable = overrides.find((override) => override.path.join('.') === key)?.variable;
    if (variable !== undefined) return variable;
    if (file === null || valueAt(inFile, path) === undefined) return 'default';
    const line = lineOf(path, text);
    return line === null ? file : `${file}:${line}`;
  };
  return { config: withAbsolutePaths(result.data, cwd), originOf };
}

function valueAt(table: RawTable, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, key) => (isTable(inner) ? inner[key] : undefined), table);
}

/** Finds the line of a key, counted from 1, where it is written plainly: under the header of its section. Else null. */
function lineOf(path: readonly string[], text: string): number | null {
  const section = path.slice(0, -1).join('.');
  let current = '';
  for (const [index, line] of text.split('\n').entries()) {
    current = /^\s*\[([^[\]]+)\]/.exec(line)?.[1]?.trim() ?? current;
    if (current === section && /^\s*([\w-]+)\s*=/.exec(line)?.[1] === path.at(-1)) return index + 1;
  }
  return null;
}

function noSuchKey(path: readonly string[]): string {
  const nearest = nearestKey(path.join('.'));
  return `there is no such key${nearest === null ? '' : `; did you mean ${nearest}?`}`;
}

/** Reads the configuration file; `file` is null where there is none. */
async function readTable(
  env: NodeJS.ProcessEnv,
  cwd: string,
): Promise<{ file: string | null; table: RawTable; text: string }> {
  const named = env['SERVICE_CONFIG_PATH'];
  const file = configFileOf({ env, cwd });
  try {
    const text = textOf(await readFile(file), file);
    return { file, table: parse(text), text };
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    if (cause instanceof TomlError) {
      // The rest of the error's message shows the lines around it, which may hold a secret.
      const [problem = ''] = cause.message.split('\n');
      throw new AppError('CONFIG_FILE_MALFORMED', { file, line: cause.line, column: cause.column, problem });
    }
    if (systemErrorCode(cause) === 'ENOENT' && named === undefined) return { file: null, table: {}, text: '' };
    throw new AppError('CONFIG_FILE_UNREADABLE', { file, problem: problemOf(cause) }, { cause });
  }
}

/**
 * Decodes a file as UTF-8, as TOML asks (v1.0.0, "Preliminaries"): read as anything else, a passphrase would silently
 * become another one.
 */
function textOf(bytes: Buffer, file: string): string {
  const position = firstNonUtf8(bytes);
  if (position === null) return bytes.toString('utf8');
  throw new AppError('CONFIG_FILE_MALFORMED', { file, ...position, problem: 'this is not UTF-8' });
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

/** The keys of paths, beside those that end in `_path`. */
const PATH_KEYS: ReadonlySet<string> = new Set(
  'data_dir scratch_dir base_dir roots anchors tsa_anchors publisher_anchors allowed rubrics_dir module'.split(' '),
);

function withAbsolutePaths(config: ReturnType<typeof configSchema.parse>, cwd: string): Config {
  const { jobs, ...others } = mapPaths(config, (path) => resolve(cwd, path));
  return { ...others, jobs: { ...jobs, scratch_dir: jobs.scratch_dir ?? join(jobs.data_dir, 'scratch') } };
}

/** Makes the paths in a table absolute, at any depth: those of keys that have one or a list of them. */
function mapPaths<T extends object>(table: T, absolute: (path: string) => string): T {
  const entries = Object.entries(table).map(([key, value]: [string, unknown]) => {
    if (isTable(value)) return [key, mapPaths(value, absolute)];
    if (!PATH_KEYS.has(key) && !key.endsWith('_path')) return [key, value];
    if (Array.isArray(value)) return [key, value.map(absolute)];
    return [key, typeof value === 'string' ? absolute(value) : value];
  });
  return Object.fromEntries(entries) as T;
}

const REPLACEMENT_CHARACTER = '\ufffd';

/**
 * Finds the first bytes that are not UTF-8, by line and character counted from 1; null where all are. They are decoded to U+FFFD,
 * whose own three bytes do not stand there.
 */
function firstNonUtf8(bytes: Buffer): { readonly line: number; readonly column: number } | null {
  if (isUtf8(bytes)) return null;
  let [line, column, offset] = [1, 1, 0];
  for (const character of bytes.toString('utf8')) {
    const sizeBytes = Buffer.byteLength(character);
    if (character === REPLACEMENT_CHARACTER && !isUtf8(bytes.subarray(offset, offset + sizeBytes))) break;
    offset += sizeBytes;
    [line, column] = character === '\n' ? [line + 1, 1] : [line, column + 1];
  }
  return { line, column };
}

type Issue = z.core.$ZodIssue;

/** Returns one line for each problem: where the key comes from, its path, and what it should be. Never its value. */
export function problemsOf(
  error: z.core.$ZodError,
  file: string | null,
  overrides: readonly EnvironmentOverride[],
): string[] {
  return error.issues.flatMap((issue) =>
    keysOf(issue).map((path) => `${originOf(path, file, overrides)}: ${path.join('.')}: ${issueProblem(issue, path)}`),
  );
}

function keysOf(issue: Issue): string[][] {
  const path = issue.path.map(String);
  return issue.code === 'unrecognized_keys' ? issue.keys.map((key) => [...path, key]) : [path];
}

/** Returns the variable or the file that a key comes from; without a file, the variable that it can be set with. */
function originOf(path: readonly string[], file: string | null, overrides: readonly EnvironmentOverride[]): string {
  const source = overrides.find((override) =>
    override.path.every((key, depth) => depth >= path.length || key === path[depth]),
  );
  return source?.variable ?? file ?? `${PREFIX}${path.join('__').toUpperCase()}`;
}

function issueProblem(issue: Issue, path: readonly string[]): string {
  switch (issue.code) {
    case 'unrecognized_keys':
      return noSuchKey(path);
    case 'invalid_type':
      if (issue.input === undefined) return 'is missing';
      return `must be ${TYPES.get(issue.expected) ?? `of the type ${issue.expected}`}`;
    case 'invalid_value':
      return `must be one of ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int' ? `must be at least ${issue.minimum}` : issue.message;
    case 'invalid_key':
      return issue.issues[0]?.message ?? issue.message;
    case 'too_big':
      return `must be at most ${issue.maximum}`;
    default:
      return issue.message;
  }
}

/** Types in the words of a configuration file, every number of which is a whole one. */
const TYPES = new Map([...TYPE_NAMES, ['number', 'a whole number'], ['object', 'a table']]);

const PREFIX = 'SERVICE__';

/** One override from the environment: the key's path, and the value in the type that the key has. */
interface EnvironmentOverride {
  readonly variable: string;
  readonly path: readonly string[];
  readonly value: unknown;
}

/**
 * Reads every `SERVICE__SECTION__KEY` variable, case-insensitive. Names without a key are returned with the path they
 * spell, so that the schema refuses them as it refuses unknown keys of a file.
 */
function environmentOverrides(env: NodeJS.ProcessEnv): EnvironmentOverride[] {
  const schema = keySchemas();
  return Object.entries(env)
    .filter(([variable, value]) => variable.toUpperCase().startsWith(PREFIX) && value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([variable, value = '']) => {
      const path = variable.slice(PREFIX.length).toLowerCase().split('__');
      return { variable, path, value: typed(value, schemaAt(path, schema)) };
    });
}

function schemaAt(path: readonly string[], root: KeySchema): KeySchema | undefined {
  return path.reduce<KeySchema | undefined>((schema, key) => schema && schemaOf(key, schema), root);
}

/** Returns a variable's text as the key's type; what does not fit stays text, and the schema says what it should be. */
function typed(value: string, { type, anyOf }: KeySchema = {}): unknown {
  if (type === 'integer') return /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  if (type === 'boolean') return /^true$/i.test(value) ? true : /^false$/i.test(value) ? false : value;
  if (type === 'array' || anyOf !== undefined)
    return value
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== '');
  return value;
}
