import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Config } from '#config/config.ts';
import { configFileOf } from '#config/config-file.ts';
import { loadConfig } from '#config/load-config.ts';
import { isAddress } from './find-inputs.ts';

/** The options of all commands that run operations. */
export interface RunOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  readonly dryRun?: boolean;
  readonly force?: boolean;
  readonly recursive?: boolean;
  readonly parallel?: number;
}

export function addRunOptions(command: Command): Command {
  return command
    .option('--config <file>', 'configuration file')
    .option('--parallel <n>', 'inputs that run at once; the number of cores by default', wholeNumber)
    .option('--force', 'replace outputs that exist')
    .option('--dry-run', 'only tell what would be done')
    .option('--json', 'write one result a line to standard output, as JSON')
    .option('--quiet', 'write problems only');
}

export interface IdentityOptions {
  readonly certificate?: string;
  readonly key?: string;
  readonly tsa?: string;
  readonly identity?: string;
}

export function addIdentityOptions(command: Command): Command {
  return command
    .option(
      '--certificate <file>',
      'certificate chain, PEM; else that of the configuration, else a development identity',
    )
    .option('--key <file>', 'private key of the certificate, PEM')
    .option('--tsa <url>', 'time-stamp authority')
    .option('--identity <name>', 'identity of the configuration; its default unless given');
}

/** Returns the option for the folder of the outputs. */
export function outputOption(description: string): Option {
  return new Option('--output <folder>', description).argParser(localPath);
}

/** Returns the absolute path that an option names. */
export function localPath(value: string): string {
  if (isAddress(value)) throw new InvalidArgumentError('Give a path on this host, not an address.');
  return resolve(value);
}

export function wholeNumber(value: string): number {
  if (/^[1-9]\d{0,2}$/.test(value)) return Number(value);
  throw new InvalidArgumentError('Give a whole number from 1 to 999.');
}

/** The variables of the keys that options stand for. */
const OPTION_OF_VARIABLE = {
  SERVICE__SIGNING__CERTIFICATE_PATH: 'certificate',
  SERVICE__SIGNING__PRIVATE_KEY_PATH: 'key',
  SERVICE__SIGNING__TSA_URL: 'tsa',
  SERVICE__SIGNING__DEFAULT_IDENTITY: 'identity',
} as const;

/** Reads the configuration of a command, with its options in place of the keys that they stand for. Throws `CONFIG_…`. */
export async function loadCommandConfig(
  { config: file }: Pick<RunOptions, 'config'>,
  options: IdentityOptions = {},
): Promise<{ readonly config: Config; readonly configFile: string }> {
  // Workers look there for a file that no input may be.
  if (file !== undefined) process.env['SERVICE_CONFIG_PATH'] = resolve(file);
  const env = { ...process.env };
  const names: Record<string, string> = {};
  for (const [variable, option] of Object.entries(OPTION_OF_VARIABLE)) {
    if (options[option] === undefined) continue;
    env[variable] = options[option];
    names[variable] = `--${option}`;
  }
  return { config: await loadConfig({ env, names }), configFile: configFileOf() };
}
