import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { inputName } from './input-name.ts';
import { nameOfPath, openLocalFile } from './local-file.ts';
import type { LocalInputPolicy } from './local-input-policy.ts';

/** Opens the file that an input reference of one type names. */
export type FileOpener<Type extends InputType = InputType> = (
  input: Extract<ApiInputRef, { type: Type }>,
  inputIndex: number,
  signal: AbortSignal,
) => Promise<ByteSource>;

export type InputType = ApiInputRef['type'];

/** The openers of a service by the input type they serve. A type without one is refused when a request is validated. */
export type FileOpeners = { readonly [Type in InputType]?: FileOpener<Type> };

/** Opens what requests name, each type of reference in its own way. */
export class InputResolver {
  readonly #files: FileOpeners;

  constructor(files: FileOpeners) {
    this.#files = files;
  }

  /** Opens a single file. The caller closes it. */
  async openFile(input: ApiInputRef, inputIndex: number, signal: AbortSignal): Promise<ByteSource> {
    const opener = this.#files[input.type] as FileOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    return await opener(input, inputIndex, signal);
  }
}

/** The opener of `local_file_path`. */
export function localFileOpener(policy: LocalInputPolicy): FileOpener<'local_file_path'> {
  return ({ path }, inputIndex, signal) =>
    openLocalFile(path, inputName([nameOfPath(path)], inputIndex), policy, signal);
}
