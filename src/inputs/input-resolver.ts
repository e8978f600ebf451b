import assert from 'node:assert/strict';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { ApiInputRef } from '#contract/request.ts';
import type { FolderBounds } from './folder-bounds.ts';
import { inputName } from './input-name.ts';
import { nameOfPath, openLocalFile } from './local/local-file.ts';
import { openLocalFolder } from './local/local-folder.ts';
import type { LocalInputPolicy } from './local/local-input-policy.ts';

export type InputType = ApiInputRef['type'];

/** What was opened for an input. */
export interface InputSize {
  readonly bytes: number;
  /** Files of a folder; 0 for a single file. */
  readonly files: number;
}

/** What an input that is being opened may use. An operation's `InputContext` is one. */
export interface OpeningContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  /** Told the size of what was opened. */
  opened?(size: InputSize): void;
}

/** What a folder's opener is told beside: where a folder cannot be listed, its playlists are found by their pattern. */
export interface FolderOpeningContext extends OpeningContext {
  readonly playlistPattern?: string;
}

/** Opens what an input reference of one type names. */
type Opener<Type extends InputType, Context extends OpeningContext, Opened> = (
  input: Extract<ApiInputRef, { type: Type }>,
  inputIndex: number,
  context: Context,
) => Promise<Opened>;

export type FileOpener<Type extends InputType = InputType> = Opener<Type, OpeningContext, ByteSource>;
export type FolderOpener<Type extends InputType = InputType> = Opener<Type, FolderOpeningContext, SourceFolder>;

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
  async openFile(input: ApiInputRef, inputIndex: number, context: OpeningContext): Promise<ByteSource> {
    const opener = this.#files[input.type] as FileOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    const source = await opener(input, inputIndex, context);
    context.opened?.({ bytes: source.sizeBytes, files: 0 });
    return source;
  }

  /** Opens a folder with everything in it. The caller closes it. */
  async openFolder(input: ApiInputRef, inputIndex: number, context: FolderOpeningContext): Promise<SourceFolder> {
    const opener = this.#folders[input.type] as FolderOpener | undefined;
    assert(opener !== undefined, `requests with inputs of type ${input.type} are refused at admission`);
    const folder = await opener(input, inputIndex, context);
    const { files } = folder;
    context.opened?.({ bytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0), files: files.length });
    return folder;
  }
}

/** The schemes of remote inputs, as they stand in `URL.protocol`. */
type Scheme = 'https:' | 'http:' | 's3:';

/** One opener out of several, by the scheme of the address. A scheme without one is refused when a request is validated. */
export function byScheme<Input extends { readonly url: string }, Context, Opened>(
  openers: Readonly<Partial<Record<Scheme, (input: Input, inputIndex: number, context: Context) => Promise<Opened>>>>,
): (input: Input, inputIndex: number, context: Context) => Promise<Opened> {
  return async (input, inputIndex, context) => {
    const { protocol } = new URL(input.url);
    const opener = openers[protocol as Scheme];
    assert(opener !== undefined, `requests with addresses of the scheme ${protocol} are refused at admission`);
    return await opener(input, inputIndex, context);
  };
}

/** The opener of `local_file_path`. */
export function localFileOpener(policy: LocalInputPolicy): FileOpener<'local_file_path'> {
  return ({ path }, inputIndex, { signal }) =>
    openLocalFile(path, inputName([nameOfPath(path)], inputIndex), policy, signal);
}

/** The opener of `local_folder_path`. */
export function localFolderOpener(policy: LocalInputPolicy, bounds: FolderBounds): FolderOpener<'local_folder_path'> {
  return ({ path }, inputIndex, { signal }) =>
    openLocalFolder(path, inputName([nameOfPath(path)], inputIndex), policy, bounds, signal);
}
