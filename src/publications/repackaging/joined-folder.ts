import type { ByteSource } from '#bytes/byte-source.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { ExistingPublication, ExistingRendition } from './existing-publication.ts';
import { JoinedSource } from './joined-source.ts';

/**
 * A publication as a folder of whole files, one for each rendition, under the names of their playlists: what can be
 * packaged like any media. The files exist only while they are read.
 */
export class JoinedFolder implements SourceFolder {
  readonly name: string;
  readonly files: readonly FolderFile[];
  readonly #joined: ReadonlyMap<string, JoinedSource>;

  constructor(folder: SourceFolder, { renditions }: ExistingPublication) {
    const sizes = new Map(folder.files.map(({ path, sizeBytes }) => [path, sizeBytes]));
    const sizeOf = (path: string): number => sizes.get(path) ?? 0;
    this.name = folder.name;
    this.#joined = new Map(
      renditions.map((rendition) => [
        joinedName(rendition),
        new JoinedSource(rendition.name, folder, rendition.parts, sizeOf),
      ]),
    );
    this.files = [...this.#joined].map(([path, { sizeBytes }]) => ({ path, sizeBytes }));
  }

  open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    const source = this.#joined.get(path);
    return source === undefined ? Promise.reject(new AppError('SOURCE_NOT_FOUND', { path })) : Promise.resolve(source);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** The name that a rendition's joined file has: that of its playlist, with an ending that says what it holds. */
export function joinedName({ name, isText, hasInit, parts }: ExistingRendition): string {
  if (!isText) return `${name}${hasInit ? '.mp4' : '.ts'}`;
  return `${name}${/\.(?:ttml|dfxp|xml)$/i.test(parts[0]?.path ?? '') ? '.ttml' : '.vtt'}`;
}
