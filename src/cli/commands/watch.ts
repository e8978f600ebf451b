import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { isSystemError, problemOf } from '#errors/system-problem.ts';
import { EXIT } from '../exit-codes.ts';
import {
  addIdentityOptions,
  type IdentityOptions,
  outputOption,
  type RunOptions,
  wholeNumber,
} from '../run-options.ts';

type WatchOptions = Pick<RunOptions, 'config' | 'json' | 'quiet' | 'force' | 'parallel'> &
  IdentityOptions & { readonly output: string };

export function addWatchCommand(program: Command): void {
  const command = program
    .command('watch')
    .description('Signs what appears in a folder and has lain still for 5 s, until Ctrl-C.')
    .argument('<folder>', 'folder; what is done in it moves to its folders done and failed')
    .addOption(outputOption('folder of the outputs (required)').makeOptionMandatory())
    .option('--config <file>', 'configuration file')
    .option('--parallel <n>', 'inputs that run at once; the number of cores by default', wholeNumber)
    .option('--force', 'replace outputs that exist')
    .option('--json', 'write one result a line to standard output, as JSON')
    .option('--quiet', 'write problems only');
  addIdentityOptions(command).action(watch);
}

/** The time between two looks at the folder. */
const LOOK_INTERVAL_MS = 1_000;

async function watch(folder: string, options: WatchOptions, command: Command): Promise<void> {
  const [{ loadCommandConfig }, { WatchedFolder }, { SigningWatch }, { Interruption }] = await Promise.all([
    import('../run-options.ts'),
    import('../watched-folder.ts'),
    import('../signing-watch.ts'),
    import('../interruption.ts'),
  ]);
  const settings = await loadCommandConfig(options, options);
  const { signal } = new Interruption();
  try {
    const watched = await WatchedFolder.open(folder, options.output, options.force ?? false);
    const signing = new SigningWatch({ watched, options, settings, signal });
    try {
      await signing.recover();
      while (!signal.aborted) {
        await signing.look();
        await sleep(LOOK_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      }
    } finally {
      await signing.close();
      watched.close();
    }
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return command.error(`${folder} cannot be watched: ${problemOf(error)}.`);
  }
  process.exitCode = EXIT.interrupted;
}
