import { basename, dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import type { FoundInput } from '../find-inputs.ts';
import type { PlannedInput } from '../run-inputs.ts';
import { addIdentityOptions, addRunOptions, type IdentityOptions, type RunOptions } from '../run-options.ts';

interface PackageOptions extends RunOptions, IdentityOptions {
  readonly output?: string;
  readonly sign?: boolean;
}

export function addPackageCommand(program: Command): void {
  const command = program
    .command('package')
    .description('Packages films as HLS and DASH.')
    .argument('<paths...>', 'films: files, or folders with the files of one; - for paths on standard input, one a line')
    .option('--output <folder>', 'folder of the outputs; beside the inputs by default')
    .option('--sign', 'sign the publication');
  addRunOptions(addIdentityOptions(command)).action(packagePaths);
}

async function packagePaths(given: string[], options: PackageOptions): Promise<void> {
  const [{ namedPaths }, { runInputs }, { loadCommandConfig }, { stemOf }, { AppError }] = await Promise.all([
    import('../find-inputs.ts'),
    import('../run-inputs.ts'),
    import('../run-options.ts'),
    import('#outputs/output-path.ts'),
    import('#errors/app-error.ts'),
  ]);
  const { sign = false } = options;
  const output = options.output === undefined ? undefined : resolve(options.output);
  const operation = sign ? 'c2pa-package' : 'package';

  async function plan({ path, kind }: FoundInput): Promise<PlannedInput> {
    if (kind === 'address') throw new AppError('SOURCE_NOT_FOUND', { path });
    const absolute = resolve(path);
    const isFile = kind === 'file';
    const name = isFile ? stemOf(basename(absolute)) : basename(absolute);
    return {
      operation,
      input: { type: 'local_folder_path', path: isFile ? dirname(absolute) : absolute },
      outputFolder: output ?? dirname(absolute),
      outputName: `${name}${sign ? '_c2pa' : '_packaged'}`,
      params: isFile ? { include: [literalGlob(basename(absolute))] } : {},
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

/** Returns a glob that matches one name alone. */
function literalGlob(name: string): string {
  return name.replace(/[\\*?[\]{}()!+@|]/g, '\\$&');
}
