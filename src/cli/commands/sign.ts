import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import type { ApiParent } from '#contract/signing.ts';
import { AppError } from '#errors/app-error.ts';
import { problemOf } from '#errors/system-problem.ts';
import type { FoundInput } from '../find-inputs.ts';
import type { PlannedInput } from '../run-inputs.ts';
import {
  addIdentityOptions,
  addRunOptions,
  type IdentityOptions,
  outputOption,
  type RunOptions,
} from '../run-options.ts';

interface SignOptions extends RunOptions, IdentityOptions {
  readonly output?: string;
  readonly sidecar?: boolean;
  readonly parent?: string;
  readonly assertions?: string;
  readonly digitalSourceType?: string;
  readonly actions?: string;
}

export function addSignCommand(program: Command): void {
  const command = program
    .command('sign')
    .description('Signs files, and publications (folders of playlists).')
    .argument('<paths...>', 'files and folders, and addresses with --output; - for paths on standard input, one a line')
    .addOption(outputOption('folder of the outputs; beside the inputs by default'))
    .option('--recursive', 'sign each media file and publication in folders')
    .option('--sidecar', 'write the manifest alone, as <stem>.c2pa')
    .option('--parent <file>', 'file or address that the inputs were made from')
    .option('--assertions <file>', 'JSON list of assertions, each with label and data')
    .option('--digital-source-type <term>', 'how new media came to be, such as digitalCapture')
    .option('--actions <file>', 'JSON list of actions that were done before');
  addRunOptions(addIdentityOptions(command)).action(sign);
}

async function sign(given: string[], options: SignOptions): Promise<void> {
  const [{ namedPaths, isAddress, operationNamedBy }, { planLocalSigning }, { runInputs }, { loadCommandConfig }] =
    await Promise.all([
      import('../find-inputs.ts'),
      import('../plan-signing.ts'),
      import('../run-inputs.ts'),
      import('../run-options.ts'),
    ]);
  const { sidecar = false, parent, output } = options;
  const signing = {
    ...(options.assertions !== undefined && { assertions: await listIn(options.assertions) }),
    ...(options.actions !== undefined && { actions: await listIn(options.actions) }),
    ...(options.digitalSourceType !== undefined && { digital_source_type: options.digitalSourceType }),
    ...(parent !== undefined && { parent: parentAt(parent, isAddress(parent)) }),
  };
  const ofFile = { ...signing, ...(sidecar && { manifest: 'sidecar', copy_source: false }) };

  async function plan(found: FoundInput): Promise<PlannedInput> {
    const { path, kind } = found;
    if (kind === 'address') {
      if (output === undefined) throw new AppError('OUTPUT_FOLDER_MISSING', {});
      const operation = operationNamedBy(URL.parse(path)?.pathname ?? '');
      return { operation, input: { type: 'remote_file_url', url: path }, outputFolder: output, params: ofFile };
    }
    const folder = output ?? dirname(resolve(path));
    const choices = { params: kind === 'file' ? ofFile : signing, isSidecar: sidecar };
    return await planLocalSigning(found, folder, choices);
  }

  await runInputs({
    options,
    paths: await namedPaths(given),
    ...(await loadCommandConfig(options, options)),
    search: {},
    signs: true,
    output,
    plan,
    describe: (path, entry) => `${path}: signed as ${entry.output_path}`,
  });
}

/** Reads a list from a JSON file. Throws `OPTION_FILE_UNUSABLE`. */
async function listIn(file: string): Promise<unknown[]> {
  try {
    const list: unknown = JSON.parse(await readFile(file, 'utf8'));
    if (Array.isArray(list)) return list;
  } catch (cause) {
    const problem = cause instanceof SyntaxError ? cause.message : problemOf(cause);
    throw new AppError('OPTION_FILE_UNUSABLE', { file, problem }, { cause });
  }
  throw new AppError('OPTION_FILE_UNUSABLE', { file, problem: 'it holds no list' });
}

function parentAt(parent: string, isRemote: boolean): ApiParent {
  if (isRemote) return { type: 'file', source: { type: 'remote_file_url', url: parent } };
  return { type: 'file', source: { type: 'local_file_path', path: resolve(parent) } };
}
