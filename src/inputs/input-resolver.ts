import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { FolderBounds } from './folder-bounds.ts';
import { inputName } from './input-name.ts';
import { nameOfPath, openLocalFile } from './local-file.ts';
import { openLocalFolder } from './local-folder.ts';
import type { LocalInputPolicy } from './local-input-policy.ts';

export type InputType = ApiInputRef['type'];

/** Opens what an input reference of one type names. */
type Opener<Type extends InputType, Opened> = (
  input: Extract<ApiInputRef, { type: Type }>,
  inputIndex: number,
  signal: AbortSignal,
) => Promise<Opened>;

export type FileOpener<Type extends InputType = InputType> = Opener<Type, ByteSource>;
export type FolderOpener<Type extends InputType = InputType> = Opener<Type, SourceFolder>;

/** The openers of a service by the input type they serve. A type without one is refused when a request is validated. */
export type FileOpeners = { readonly [Type in InputType]?: FileOpener<Type> };
export type FolderOpeners = { readonly [Type in InputType]?: FolderOpener<Type> };

/** Opens what requests name, each type of reference in its own way. */
export class InputResolver {
  readonly #files: FileOpeners;
  readonly #folders: FolderOpeners;

  constructor(files: FileOpeners, folders: FolderOpeners = {}) {
    this.#files = files;
    this.#folders = folders;
  }

  /** Opens a single file. The caller closes it. */
  async openFile(input: ApiInputRef, inputIndex: number, signal: AbortSignal): Promise<ByteSource> {
    const opener = this.#files[input.type] as FileOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    return await opener(input, inputIndex, signal);
  }

  /** Opens a folder with everything in it. The caller closes it. */
  async openFolder(input: ApiInputRef, inputIndex: number, signal: AbortSignal): Promise<SourceFolder> {
    const opener = this.#folders[input.type] as FolderOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    return await opener(input, inputIndex, signal);
  }
}

/** The opener of `local_file_path`. */
export function localFileOpener(policy: LocalInputPolicy): FileOpener<'local_file_path'> {
  return ({ path }, inputIndex, signal) =>
    openLocalFile(path, inputName([nameOfPath(path)], inputIndex), policy, signal);
}

/** The opener of `local_folder_path`. */
export function localFolderOpener(policy: LocalInputPolicy, bounds: FolderBounds): FolderOpener<'local_folder_path'> {
  return ({ path }, inputIndex, signal) =>
    openLocalFolder(path, inputName([nameOfPath(path)], inputIndex), policy, bounds, signal);
}
