import type { ByteSource } from '#bytes/byte-source.ts';
import { partitionPoint } from '#bytes/partition-point.ts';
import { type FolderFile, type SourceFolder, sizesIn } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import type { ExistingPublication, ExistingRendition } from './existing-publication.ts';
import type { MediaPart } from './media-part.ts';

/**
 * A publication as a folder of whole files, one for each rendition, under the names of their playlists: what can be
 * packaged like any media. The files exist only while they are read.
 */
export class JoinedFolder implements SourceFolder {
  readonly name: string;
  readonly files: readonly FolderFile[];
  readonly #joined: ReadonlyMap<string, JoinedSource>;

  constructor(folder: SourceFolder, { renditions }: ExistingPublication) {
    const sizes = sizesIn(folder);
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
}

/** Returns the name of a rendition's joined file: that of its playlist, with the extension of its format. */
export function joinedName({ name, isText, hasInit, parts }: ExistingRendition): string {
  if (!isText) return `${name}${hasInit ? '.mp4' : '.ts'}`;
  return `${name}${/\.(?:ttml|dfxp|xml)$/i.test(parts[0]?.path ?? '') ? '.ttml' : '.vtt'}`;
}

/** A part and its offset in the joined file. */
interface PlacedPart {
  readonly part: MediaPart;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** Parts of a folder's files, one after the other, as one file: what segments were cut from. */
export class JoinedSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly #files: OpenFileCache;
  readonly #parts: readonly PlacedPart[];

  /** `sizeOf` gives the size of a whole file. */
  constructor(name: string, folder: SourceFolder, parts: readonly MediaPart[], sizeOf: (path: string) => number) {
    this.name = name;
    this.#files = new OpenFileCache(folder);
    let offset = 0;
    this.#parts = parts.map((part) => {
      const sizeBytes = part.range?.length ?? sizeOf(part.path);
      const placed = { part, offset, sizeBytes };
      offset += sizeBytes;
      return placed;
    });
    this.sizeBytes = offset;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    const end = offset + target.length;
    const first = partitionPoint(this.#parts, (part) => part.offset + part.sizeBytes > offset);
    for (let at = first; at < this.#parts.length; at += 1) {
      const { part, offset: start, sizeBytes } = itemAt(this.#parts, at);
      if (start >= end) return;
      const from = Math.max(offset, start);
      const to = Math.min(end, start + sizeBytes);
      if (to <= from) continue;
      const inFile = (part.range?.offset ?? 0) + from - start;
      const bytes = target.subarray(from - offset, to - offset);
      await this.#files.use(part.path, signal, (source) => source.read(bytes, inFile, signal));
    }
  }

  /** Closes the open files. A later read opens them again. */
  async close(): Promise<void> {
    await this.#files.closeUnused(0);
  }
}

/** Limit on idle files that stay open. */
const MAX_IDLE_OPEN_FILES = 4;

interface OpenFile {
  readonly path: string;
  readonly source: Promise<ByteSource>;
  /** Reads that are running. */
  users: number;
}

/** Cache of open files, least recently used first: opening a file may be a request over the network. */
class OpenFileCache {
  readonly #folder: SourceFolder;
  /** Sorted by last use; the most recent one is last. */
  #files: OpenFile[] = [];

  constructor(folder: SourceFolder) {
    this.#folder = folder;
  }

  async use<T>(path: string, signal: AbortSignal, task: (source: ByteSource) => Promise<T>): Promise<T> {
    const known = this.#files.find((file) => file.path === path);
    const file = known ?? { path, source: this.#folder.open(path, signal), users: 0 };
    this.#files = [...this.#files.filter((other) => other !== file), file];
    file.users += 1;
    try {
      return await task(await file.source);
    } catch (error) {
      // A file that failed to open, or was aborted, is opened again by the next call.
      this.#files = this.#files.filter((other) => other !== file);
      // Errors of closing are ignored: the failed read is reported instead.
      if (file.users === 1) await file.source.then((opened) => opened.close()).catch(() => undefined);
      throw error;
    } finally {
      file.users -= 1;
      await this.closeUnused(MAX_IDLE_OPEN_FILES);
    }
  }

  /** Closes idle files but for the last `kept` that were used. Safe to call again. */
  async closeUnused(kept: number): Promise<void> {
    const unused = this.#files.filter(({ users }) => users === 0);
    const closing = unused.slice(0, Math.max(unused.length - kept, 0));
    this.#files = this.#files.filter((file) => !closing.includes(file));
    for (const { source } of closing) await (await source).close();
  }
}
