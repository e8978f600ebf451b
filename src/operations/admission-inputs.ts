import { extname, resolve } from 'node:path';
import type { Config } from '#config/config.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { AppError, type ErrorLocation } from '#errors/app-error.ts';
import { folderNameOfUrl, inputName, nameOfUrl } from '#inputs/input-name.ts';
import { nameOfPath } from '#inputs/local/local-file.ts';
import { admittedS3Address, admittedS3Object, isS3Url } from '#s3/s3-address.ts';
import { inTurns } from './in-turns.ts';
import {
  AUDIO_EXTENSIONS,
  AUDIO_ONLY_EXTENSIONS,
  UNSIGNABLE_EXTENSIONS,
  VIDEO_EXTENSIONS,
} from './media-extensions.ts';

/** Refuses an input by the extension of its name: lower case, without dot, empty where there is none. */
export type ExtensionRule = (name: string, extension: string, inputIndex: number) => void;

/** Admits the inputs of an operation on files: their number, their types, and what their names say. */
export async function admitFileInputs(
  inputs: readonly ApiInputRef[],
  config: Config,
  admitExtension: ExtensionRule,
): Promise<void> {
  admitCount(inputs, config);
  for await (const [inputIndex, input] of inTurns(inputs)) {
    refuseFolder(input, inputIndex);
    const name = requestedName(input, inputIndex);
    admitExtension(name, extensionOf(name), inputIndex);
    requireResolver(input, config, { field: `inputs[${inputIndex}]`, inputIndex });
  }
}

/** Admits the inputs of an operation on folders. */
export async function admitFolderInputs(inputs: readonly ApiInputRef[], config: Config): Promise<void> {
  admitCount(inputs, config);
  for await (const [inputIndex, input] of inTurns(inputs)) {
    if (input.type !== 'local_folder_path' && input.type !== 'remote_folder_url') {
      throw new AppError(
        'INPUT_IS_FILE',
        { type: input.type, inputIndex },
        { field: `inputs[${inputIndex}].type`, inputIndex },
      );
    }
    if ('path' in input && resolve(input.path) === '/') {
      throw new AppError('FOLDER_IS_ROOT', {}, { field: `inputs[${inputIndex}].path`, inputIndex });
    }
    requireResolver(input, config, { field: `inputs[${inputIndex}]`, inputIndex });
  }
}

function admitCount({ length: count }: readonly ApiInputRef[], config: Config): void {
  const limit = config.worker.max_inputs_per_job;
  if (count > limit) throw new AppError('TOO_MANY_INPUTS', { count, limit }, { field: 'inputs' });
}

/** The name that an input has by what the request says. What a server says of it later may replace it. */
export function requestedName(input: ApiInputRef, inputIndex: number): string {
  if ('path' in input) return inputName([nameOfPath(input.path)], inputIndex);
  if (input.type === 'remote_folder_url') return inputName([folderNameOfUrl(input.url)], inputIndex);
  return inputName([input.filename_hint, nameOfUrl(input.url)], inputIndex);
}

/** The extension of a name, lower case and without dot; empty where there is none. */
export function extensionOf(name: string): string {
  return extname(name).slice(1).toLowerCase();
}

/** Where a reference to a file or folder stands in a request. */
export type ReferenceLocation = ErrorLocation & { readonly field: string };

/** Refuses a reference that nothing in this deployment opens. */
export function requireResolver(input: ApiInputRef, { input_resolvers }: Config, location: ReferenceLocation): void {
  if (!('url' in input) || !isS3Url(input.url)) return;
  const admitted = input.type === 'remote_file_url' ? admittedS3Object : admittedS3Address;
  admitted(input.url, input_resolvers.s3, { ...location, field: `${location.field}.url` });
}

/** Extensions that the video endpoint refuses. What has another one, or none, is settled by its bytes. */
export const videoExtensions: ExtensionRule = (name, extension, inputIndex) => {
  if (AUDIO_ONLY_EXTENSIONS.has(extension)) {
    throw refusal(name, inputIndex, `".${extension}" is audio. Use the audio endpoint`);
  }
  if (UNSIGNABLE_EXTENSIONS.has(extension)) throw refusal(name, inputIndex, noManifest(extension));
};

/** Extensions that the audio endpoint refuses: of the media it does not sign. */
export const audioExtensions: ExtensionRule = (name, extension, inputIndex) => {
  if (VIDEO_EXTENSIONS.has(extension)) {
    const signed = [...AUDIO_EXTENSIONS].join(', ');
    throw refusal(name, inputIndex, `the audio endpoint signs ${signed}. Use the video endpoint for ".${extension}"`);
  }
  if (UNSIGNABLE_EXTENSIONS.has(extension)) throw refusal(name, inputIndex, noManifest(extension));
};

function refuseFolder({ type }: ApiInputRef, inputIndex: number): void {
  if (type === 'local_file_path' || type === 'remote_file_url') return;
  throw new AppError('INPUT_IS_FOLDER', { type, inputIndex }, { field: `inputs[${inputIndex}].type`, inputIndex });
}

function refusal(name: string, inputIndex: number, problem: string): AppError {
  return new AppError('INPUT_EXTENSION_REFUSED', { name, problem }, { field: `inputs[${inputIndex}]`, inputIndex });
}

function noManifest(extension: string): string {
  return `a ".${extension}" file cannot carry a manifest here. Convert it to MP4, MOV, M4A, WAV, MP3 or FLAC`;
}
