import { basename, resolve } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { type FoundInput, signOperationOf } from './find-inputs.ts';
import type { PlannedInput } from './run-inputs.ts';

/** Parameters of a signature. */
export interface SigningChoices {
  /** `params` of the request. */
  readonly params: object;
  /** Writes the manifest alone. */
  readonly isSidecar: boolean;
}

/** Plans the signature of a local file or publication. Throws `SOURCE_IS_FOLDER` for a publication and a sidecar. */
export async function planLocalSigning(
  { path, kind }: FoundInput,
  outputFolder: string,
  { params, isSidecar }: SigningChoices,
): Promise<PlannedInput> {
  const absolute = resolve(path);
  if (kind === 'file') {
    const operation = isSidecar ? 'c2pa-video' : await signOperationOf(absolute);
    return { operation, input: { type: 'local_file_path', path: absolute }, outputFolder, params };
  }
  if (isSidecar) throw new AppError('SOURCE_IS_FOLDER', { path });
  return {
    operation: 'c2pa-package',
    input: { type: 'local_folder_path', path: absolute },
    outputFolder,
    outputName: `${basename(absolute)}_c2pa`,
    params: { ...params, existing: 'copy' },
  };
}
