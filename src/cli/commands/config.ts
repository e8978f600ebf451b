import type { Command } from 'commander';
import { EXIT } from '../exit-codes.ts';
import { endOnOutputError, Terminal } from '../terminal.ts';

interface OutputOptions {
  readonly json?: boolean;
}

const JSON_OPTION = ['--json', 'one entry a line, as JSON'] as const;

export function addConfigCommand(program: Command): void {
  const config = program.command('config').description('Shows, explains and checks the configuration.');
  config
    .command('show')
    .description('Shows the values in force and where each comes from. Secrets are masked.')
    .option('--config <file>', 'configuration file')
    .option(...JSON_OPTION)
    .action(show);
  config
    .command('explain')
    .argument('<key>', 'key, such as signing.tsa_url, or a section')
    .description('Explains a key, or all of a section: meaning, type, bounds and default.')
    .option(...JSON_OPTION)
    .action(explain);
  config
    .command('check')
    .argument('<file>', 'configuration file')
    .description('Checks a file as the service does at its start, variables of the environment included.')
    .option(...JSON_OPTION)
    .action(check);
}

async function show({ config: file, ...options }: OutputOptions & { readonly config?: string }): Promise<void> {
  endOnOutputError();
  const terminal = new Terminal(options);
  const { shownConfig } = await import('#config/config.ts');
  const { RECORDS } = await import('#config/config-schema.ts');
  const { loadWithOrigins } = await import('#config/load-config.ts');
  const { describeKeys } = await import('#config/key-descriptions.ts');
  const { config, originOf } = await loadWithOrigins({ env: withFile(file) });
  const { settings, withheld } = shownConfig(config);
  const isInRecord = (key: string) => RECORDS.some((record) => key.startsWith(`${record}.`));
  const fixed = describeKeys().flatMap(({ key }) => (isInRecord(key) ? [] : [key]));
  for (const key of [...fixed, ...[...Object.keys(settings), ...withheld].filter(isInRecord)]) {
    const isSecret = (withheld as readonly string[]).includes(key);
    const value = isSecret ? '***' : (settings[key as keyof typeof settings] ?? null);
    const origin = originOf(key);
    const shown = isSecret ? value : value === null ? 'unset' : JSON.stringify(value);
    terminal.result({ key, value, origin }, `${key} = ${shown}  # ${origin}`);
  }
}

async function explain(key: string, options: OutputOptions): Promise<void> {
  endOnOutputError();
  const terminal = new Terminal(options);
  const { keysNamed } = await import('#config/key-descriptions.ts');
  const found = keysNamed(key);
  if (found.length === 0) {
    const { nearestKey } = await import('#config/nearest-key.ts');
    const nearest = nearestKey(key);
    terminal.problem(`There is no key ${key}.${nearest === null ? '' : ` Did you mean ${nearest}?`}`);
    process.exitCode = EXIT.usage;
    return;
  }
  for (const { section: _, ...entry } of found) {
    const example = entry.example === null ? '' : `; for example ${entry.example}`;
    const head = [entry.bounds, `default: ${entry.default}${example}`].filter(Boolean).join('; ');
    const variable = `SERVICE__${entry.key.replaceAll('.', '__').toUpperCase()}`;
    const lines = [entry.key, `  ${head}`, `  variable: ${variable}`, ...(entry.meaning && [`  ${entry.meaning}`])];
    terminal.result({ ...entry, variable }, lines.join('\n').replaceAll('`', ''));
  }
}

async function check(file: string, options: OutputOptions): Promise<void> {
  const { loadConfig } = await import('#config/load-config.ts');
  await loadConfig({ env: withFile(file) });
  new Terminal(options).result({ file, valid: true }, `${file} is right.`);
}

function withFile(file: string | undefined): NodeJS.ProcessEnv {
  return file === undefined ? process.env : { ...process.env, SERVICE_CONFIG_PATH: file };
}
