import type { Command } from 'commander';
import { EXIT } from '../exit-codes.ts';
import { endOnOutputError, Terminal } from '../terminal.ts';

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

async function run(options: PreflightOptions): Promise<void> {
  endOnOutputError();
  const terminal = new Terminal({ json: options.json ?? false });
  const { loadCommandConfig } = await import('../run-options.ts');
  const { preflight } = await import('#preflight.ts');
  const { config, configFile } = await loadCommandConfig(options);
  for await (const finding of preflight(config, configFile)) {
    const { check, state, detail } = finding;
    if (state === 'failed') process.exitCode = EXIT.usage;
    if (options.quiet && state === 'ok') continue;
    terminal.result(finding, `${state.padEnd(7)} ${check}: ${detail}`);
  }
  // A child process that hangs in a file system cannot be killed, and would keep this one.
  process.exit();
}
