import { basename } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { FolderFile, SourceFolder, UnlistedFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import type { FolderBounds } from '../folder-bounds.ts';
import { safeName } from '../input-name.ts';
import { checkSegment } from './directory-index.ts';
import { shownAddress } from './http-address.ts';
import type { HttpClient } from './http-client.ts';
import { openHttpFile } from './http-file.ts';
import { probeFile } from './http-probe.ts';
import type { HttpVersion } from './http-version.ts';

/** Files whose size is asked for at once. */
const PROBES_AT_ONCE = 16;

/** What all files of an HTTP folder have in common. */
export interface HttpFolderPlace {
  readonly client: HttpClient;
  readonly name: string;
  /** Ends in `/` and has no query. */
  readonly baseUrl: URL;
  readonly bounds: FolderBounds;
  readonly scratch: ScratchSpace;
}

interface FoundFile {
  readonly url: URL;
  /** Null where the size is not known yet. */
  version: HttpVersion | null;
}

/** Collects the files of an HTTP folder, within its bounds, and makes it a folder. */
export class HttpFolderFiles {
  readonly #place: HttpFolderPlace;
  readonly #files = new Map<string, FoundFile>();

  constructor(place: HttpFolderPlace) {
    this.#place = place;
  }

  /** Takes a file by its decoded path; what was found first counts. `sizeBytes` is null where it is not known. */
  add(path: string, url: URL, sizeBytes: number | null): void {
    if (this.#files.has(path)) return;
    const { maxFiles, maxDepth } = this.#place.bounds;
    const segments = path.split('/');
    for (const segment of segments) checkSegment(this.#shownPath, segment);
    if (segments.length - 1 > maxDepth) throw this.tooLarge('levels of folders', maxDepth);
    if (this.#files.size >= maxFiles) throw this.tooLarge('files', maxFiles);
    const version = sizeBytes === null ? null : { sizeBytes, etag: null, lastModified: null };
    this.#files.set(path, { url, version });
  }

  /** Asks for the sizes that are not known yet. What is not there is left out: not all that is named has to be. */
  async folder(signal: AbortSignal): Promise<SourceFolder> {
    const unknown = [...this.#files].filter(([, { version }]) => version === null);
    await sideBySide(unknown, PROBES_AT_ONCE, async ([path, file]) => {
      file.version = await this.#probe(file.url, signal);
      this.#place.scratch.signOfLife();
      if (file.version === null) this.#files.delete(path);
    });
    const { maxBytes } = this.#place.bounds;
    const sizeBytes = [...this.#files.values()].reduce((sum, { version }) => sum + (version?.sizeBytes ?? 0), 0);
    if (sizeBytes > maxBytes) throw this.tooLarge('bytes', maxBytes);
    if (this.#files.size === 0) throw new AppError('FOLDER_EMPTY', { path: this.#shownPath });
    return new HttpFolder(this.#place, this.#files as ReadonlyMap<string, ListedFile>);
  }

  /** The folder while only references tell what is in it. */
  unlisted(): UnlistedFolder {
    const { name, baseUrl } = this.#place;
    return {
      name,
      files: [],
      baseUrl: baseUrl.href,
      note: (path, url) => this.add(path, url, null),
      open: (path, signal) => openFile(this.#place, path, this.#files.get(path), signal),
      close: () => Promise.resolve(),
    };
  }

  tooLarge(what: 'files' | 'folders' | 'bytes' | 'levels of folders', limit: number): AppError {
    return new AppError('FOLDER_TOO_LARGE', { path: this.#shownPath, what, limit });
  }

  get #shownPath(): string {
    return shownAddress(this.#place.baseUrl);
  }

  async #probe(url: URL, signal: AbortSignal): Promise<HttpVersion | null> {
    try {
      return await probeFile(this.#place.client, url, signal);
    } catch (error) {
      if (error instanceof AppError && error.reason === 'HTTP_NOT_FOUND') return null;
      throw error;
    }
  }
}

type ListedFile = FoundFile & { readonly version: HttpVersion };

/** A folder on a server. Nothing is held open but the files that callers opened. */
class HttpFolder implements SourceFolder {
  readonly name: string;
  readonly baseUrl: string;
  readonly files: readonly FolderFile[];
  readonly #place: HttpFolderPlace;
  readonly #byPath: ReadonlyMap<string, ListedFile>;

  constructor(place: HttpFolderPlace, files: ReadonlyMap<string, ListedFile>) {
    this.name = place.name;
    this.baseUrl = place.baseUrl.href;
    this.files = [...files]
      .map(([path, { version }]) => ({ path, sizeBytes: version.sizeBytes }))
      .sort((first, second) => (first.path < second.path ? -1 : 1));
    this.#place = place;
    this.#byPath = files;
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    return await openFile(this.#place, path, this.#byPath.get(path), signal);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function openFile(
  { client, name, scratch }: HttpFolderPlace,
  path: string,
  file: FoundFile | undefined,
  signal: AbortSignal,
): Promise<ByteSource> {
  signal.throwIfAborted();
  if (file === undefined) throw new AppError('SOURCE_NOT_FOUND', { path });
  const nameOf = (): string => safeName(basename(path)) || name;
  const listed = file.version === null ? {} : { listed: file.version };
  return await openHttpFile(client, { url: file.url, nameOf, ...listed, signal, scratch });
}
