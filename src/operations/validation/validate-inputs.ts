import { extname, resolve } from 'node:path';
import { yieldingEntries } from '#concurrency/yielding-iteration.ts';
import type { Config } from '#config/config.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { AppError, type ErrorLocation } from '#errors/app-error.ts';
import { requestedName } from '#inputs/input-name.ts';
import { admittedS3Address, admittedS3Object, isS3Url } from '#s3/s3-address.ts';

/** Returns why an operation refuses an extension (lower case, without dot), as the end of a sentence; null where it does not. */
export type ExtensionRule = (extension: string) => string | null;

/**
 * Checks the inputs of an operation on files: their number, their types, the extensions of their names, and that this
 * deployment can open them. Throws `TOO_MANY_INPUTS`, `INPUT_IS_FOLDER`, `INPUT_EXTENSION_REFUSED` or an S3 reason.
 */
export async function validateFileInputs(
  inputs: readonly ApiInputRef[],
  config: Config,
  refusalOf: ExtensionRule,
): Promise<void> {
  validateCount(inputs, config);
  for await (const [inputIndex, input] of yieldingEntries(inputs)) {
    const location = { field: `inputs[${inputIndex}]`, inputIndex };
    const { type } = input;
    if (isFolder(input)) {
      throw new AppError('INPUT_IS_FOLDER', { type, inputIndex }, { ...location, field: `${location.field}.type` });
    }
    refuseExtension(requestedName(input, inputIndex), refusalOf, location);
    requireResolver(input, config, location);
  }
}

function refuseExtension(name: string, refusalOf: ExtensionRule, location: ErrorLocation): void {
  const problem = refusalOf(extensionOf(name));
  if (problem !== null) throw new AppError('INPUT_EXTENSION_REFUSED', { name, problem }, location);
}

/**
 * Checks the inputs of an operation on folders: their number, their types, and that this deployment can open them.
 * Throws `TOO_MANY_INPUTS`, `INPUT_IS_FILE`, `FOLDER_IS_ROOT` or an S3 reason.
 */
export async function validateFolderInputs(inputs: readonly ApiInputRef[], config: Config): Promise<void> {
  validateCount(inputs, config);
  for await (const [inputIndex, input] of yieldingEntries(inputs)) {
    const location = { field: `inputs[${inputIndex}]`, inputIndex };
    const { type } = input;
    if (!isFolder(input)) {
      throw new AppError('INPUT_IS_FILE', { type, inputIndex }, { ...location, field: `${location.field}.type` });
    }
    refuseRoot(input, location);
    requireResolver(input, config, location);
  }
}

/** Checks the inputs of an operation on files and folders, as the other checks do, but for the extensions of names. */
export async function validateAnyInputs(inputs: readonly ApiInputRef[], config: Config): Promise<void> {
  validateCount(inputs, config);
  for await (const [inputIndex, input] of yieldingEntries(inputs)) {
    const location = { field: `inputs[${inputIndex}]`, inputIndex };
    if (isFolder(input)) refuseRoot(input, location);
    requireResolver(input, config, location);
  }
}

/** Returns true for a reference to a folder. */
export function isFolder({ type }: ApiInputRef): boolean {
  return type === 'local_folder_path' || type === 'remote_folder_url';
}

function refuseRoot(input: ApiInputRef, location: ReferenceLocation): void {
  if ('path' in input && resolve(input.path) === '/') {
    throw new AppError('FOLDER_IS_ROOT', {}, { ...location, field: `${location.field}.path` });
  }
}

function validateCount({ length: count }: readonly ApiInputRef[], config: Config): void {
  const limit = config.worker.max_inputs_per_job;
  if (count > limit) throw new AppError('TOO_MANY_INPUTS', { count, limit }, { field: 'inputs' });
}

/** Returns the extension of a name, lower case and without dot; empty where there is none. */
export function extensionOf(name: string): string {
  return extname(name).slice(1).toLowerCase();
}

/** Position of a reference to a file or folder in a request. */
export type ReferenceLocation = ErrorLocation & { readonly field: string };

/** Refuses a reference that no input resolver of this deployment opens. Throws an S3 reason. */
export function requireResolver(input: ApiInputRef, { input_resolvers }: Config, location: ReferenceLocation): void {
  if (!('url' in input) || !isS3Url(input.url)) return;
  const check = input.type === 'remote_file_url' ? admittedS3Object : admittedS3Address;
  check(input.url, input_resolvers.s3, { ...location, field: `${location.field}.url` });
}
