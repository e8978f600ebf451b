import { Command, CommanderError } from 'commander';
import { RELEASE } from '#config/release.ts';
import { AppError } from '#errors/app-error.ts';
import { inCommandWords } from './command-words.ts';
import { addConfigCommand } from './commands/config.ts';
import { addIdentityCommand } from './commands/identity.ts';
import { addPackageCommand } from './commands/package.ts';
import { addPlayCommand } from './commands/play.ts';
import { addPreflightCommand } from './commands/preflight.ts';
import { addServeCommand } from './commands/serve.ts';
import { addSignCommand } from './commands/sign.ts';
import { addVerifyCommand } from './commands/verify.ts';
import { addWatchCommand } from './commands/watch.ts';
import { EXIT } from './exit-codes.ts';
import { Terminal } from './terminal.ts';

const COMMANDS: readonly ((program: Command) => void)[] = [
  addServeCommand,
  addSignCommand,
  addVerifyCommand,
  addPackageCommand,
  addPlayCommand,
  addWatchCommand,
  addConfigCommand,
  addIdentityCommand,
  addPreflightCommand,
];

const program = new Command('attestream')
  .description('Signs and verifies media with Content Credentials (C2PA).')
  .version(RELEASE.version, '--version')
  .showHelpAfterError('(--help shows what can be given)')
  .exitOverride();
for (const add of COMMANDS) add(program);

try {
  await program.parseAsync();
} catch (error) {
  process.exitCode = exitCodeOf(error);
}

/** Returns the exit code of an error that no command handled. Commander has written its own errors already. */
function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  if (!(error instanceof AppError)) throw error;
  new Terminal().problem(inCommandWords(error.message));
  return EXIT.usage;
}
