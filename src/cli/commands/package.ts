import { basename, dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import type { FoundInput } from '../find-inputs.ts';
import type { PlannedInput } from '../run-inputs.ts';
import {
  addIdentityOptions,
  addRunOptions,
  type IdentityOptions,
  outputOption,
  type RunOptions,
} from '../run-options.ts';

interface PackageOptions extends RunOptions, IdentityOptions {
  readonly output?: string;
  readonly sign?: boolean;
}

export function addPackageCommand(program: Command): void {
  const command = program
    .command('package')
    .description('Packages films as HLS and DASH.')
    .argument('<paths...>', 'folders, each with the files of one film; - for paths on standard input, one a line')
    .addOption(outputOption('folder of the outputs; beside the inputs by default'))
    .option('--sign', 'sign the publication');
  addRunOptions(addIdentityOptions(command)).action(packagePaths);
}

async function packagePaths(given: string[], options: PackageOptions, command: Command): Promise<void> {
  const ofSignature = (['certificate', 'key', 'tsa', 'identity'] as const).find((name) => options[name] !== undefined);
  if (ofSignature !== undefined && !options.sign) return command.error(`--${ofSignature} needs --sign.`);
  const [{ namedPaths }, { runInputs }, { loadCommandConfig }, { AppError }] = await Promise.all([
    import('../find-inputs.ts'),
    import('../run-inputs.ts'),
    import('../run-options.ts'),
    import('#errors/app-error.ts'),
  ]);
  const { sign = false, output } = options;
  const operation = sign ? 'c2pa-package' : 'package';

  async function plan({ path, kind }: FoundInput): Promise<PlannedInput> {
    if (kind !== 'folder') throw new AppError('SOURCE_NOT_FOLDER', { path });
    const absolute = resolve(path);
    return {
      operation,
      input: { type: 'local_folder_path', path: absolute },
      outputFolder: output ?? dirname(absolute),
      outputName: `${basename(absolute)}${sign ? '_c2pa' : '_packaged'}`,
      params: {},
    };
  }

  await runInputs({
    options,
    paths: await namedPaths(given),
    ...(await loadCommandConfig(options, options)),
    search: { takesFolders: true },
    signs: sign,
    output,
    plan,
    describe: (path, entry) => `${path}: packaged as ${entry.output_path}`,
  });
}
