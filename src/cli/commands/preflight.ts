import type { Command } from 'commander';
import { EXIT } from '../exit-codes.ts';
import { Terminal } from '../terminal.ts';

interface PreflightOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export function addPreflightCommand(program: Command): void {
  program
    .command('preflight')
    .description('Checks all that the service needs, also beside a running one: a line each, with the remedy.')
    .option('--config <file>', 'configuration file')
    .option('--json', 'one entry a line, as JSON')
    .option('--quiet', 'problems and warnings only')
    .action(run);
}

async function run({ config: file, ...options }: PreflightOptions): Promise<void> {
  const terminal = new Terminal(options);
  const { configFileOf, loadConfig } = await import('#config/load-config.ts');
  const { preflight } = await import('#preflight.ts');
  const env = file === undefined ? process.env : { ...process.env, SERVICE_CONFIG_PATH: file };
  const cwd = process.cwd();
  const config = await loadConfig({ env, cwd });
  for await (const finding of preflight(config, configFileOf({ env, cwd }))) {
    const { check, state, detail } = finding;
    if (state === 'failed') process.exitCode = EXIT.usage;
    if (options.quiet !== true || state !== 'ok') {
      terminal.result(finding, `${state.padEnd(7)} ${check}: ${detail}`);
    }
  }
}
