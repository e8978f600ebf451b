import { basename } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import type { ApiInputRef } from '#contract/request.ts';
import { AppError } from '#errors/app-error.ts';
import { safeName } from './input-name.ts';

export type InputType = ApiInputRef['type'];

/** The size of an opened input. */
export interface InputSize {
  readonly bytes: number;
  /** Files of a folder; 0 for a single file. */
  readonly files: number;
}

/** The context of opening an input. An operation's `InputContext` is one. */
export interface OpeningContext {
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
  /** Reports the size of what was opened. */
  opened?(size: InputSize): void;
}

/** The context of opening a folder. The pattern finds playlists in folders that cannot be listed. */
export interface FolderOpeningContext extends OpeningContext {
  readonly playlistPattern?: string;
}

/** The largest folder that is accepted as an input, from whatever source. */
export interface FolderLimits {
  readonly maxFiles: number;
  /** All files together. */
  readonly maxBytes: number;
  /** Nested folders, the input folder itself not counted. */
  readonly maxDepth: number;
}

/** Opens what an input reference of one type names. */
type Opener<Type extends InputType, Context extends OpeningContext, Opened> = (
  input: Extract<ApiInputRef, { type: Type }>,
  inputIndex: number,
  context: Context,
) => Promise<Opened>;

export type FileOpener<Type extends InputType = InputType> = Opener<Type, OpeningContext, ByteSource>;
export type FolderOpener<Type extends InputType = InputType> = Opener<Type, FolderOpeningContext, SourceFolder>;

/** Returns a folder as it was listed, its files by their paths. `open` opens a file under the name that its source will have. */
export function listedFolder<File extends FolderFile>(
  name: string,
  listed: readonly File[],
  open: (file: File, sourceName: string) => Promise<ByteSource>,
): SourceFolder {
  const files = listed.toSorted((first, second) => (first.path < second.path ? -1 : 1));
  const byPath = new Map(files.map((file) => [file.path, file]));
  return {
    name,
    files,
    async open(path, signal) {
      signal.throwIfAborted();
      const file = byPath.get(path);
      if (file === undefined) throw new AppError('SOURCE_NOT_FOUND', { path });
      return await open(file, safeName(basename(path)) || name);
    },
  };
}
