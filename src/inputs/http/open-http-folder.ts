import { setImmediate as nextTurn } from 'node:timers/promises';
import type { SourceFolder, UnlistedFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { folderNameOfUrl, inputName, nameOfUrl } from '../input-name.ts';
import type { FolderLimits, FolderOpener, FolderOpeningContext } from '../input-opener.ts';
import { checkSegment, type IndexEntry, readDirectoryIndex } from './directory-index.ts';
import type { HttpClient } from './http-client.ts';
import { ABSENT_REASONS, requestError, shownAddress } from './http-errors.ts';
import { HttpFolderFiles } from './http-folder-files.ts';
import { mediaTypeOf } from './http-headers.ts';
import { tooLong } from './ranged-source.ts';
import { readBody } from './response-body.ts';

/** Limits a playlist, and the page that lists a directory; 100,000 files fit in. */
const MAX_PAGE_BYTES = 64 * 1024 * 1024;

/** Directories that are listed at once. */
const MAX_CONCURRENT_LISTINGS = 8;

/** A playlist or MPD, by how it begins. */
const PLAYLIST_BEGINNING =
  /^\uFEFF?\s*(?:#EXTM3U|(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->)[\s\S])*-->\s*)*<(?:\w+:)?MPD[\s>])/;

/** Caddy lists as JSON where that is asked for; its page is made for people. Others answer as they always do. */
const PAGE_HEADERS = { accept: 'application/json, */*;q=0.9' };

const MISSING_REASONS: ReadonlySet<string> = new Set([...ABSENT_REASONS, 'FOLDER_NOT_LISTED']);

/** A pattern that is the path of one file. */
const LITERAL_PATTERN = /^[^*?[\]{}()!+@|\\]+$/;

/**
 * Finds what a playlist refers to, and what the playlists among that refer to: everything inside the folder is noted in it.
 */
export type PlaylistCrawler = (folder: UnlistedFolder, entryPath: string, signal: AbortSignal) => Promise<void>;

/**
 * Returns the opener of `remote_folder_url` with the schemes `https://` and `http://`. The files are what a playlist
 * refers to, where the address or the pattern for playlists names one; else what the server lists.
 */
export function httpFolderOpener(
  client: HttpClient,
  limits: FolderLimits,
  crawl: PlaylistCrawler,
): FolderOpener<'remote_folder_url'> {
  return async ({ url }, inputIndex, context) => {
    const name = inputName([folderNameOfUrl(url)], inputIndex);
    return await new FolderOpening({ client, name, limits, crawl, context }).open(new URL(url));
  };
}

/** A response that was read completely. */
interface Page {
  readonly bytes: Buffer;
  readonly mediaType: string | undefined;
  /** The address after all redirects. */
  readonly url: URL;
}

/** A directory that is yet to be listed. */
interface Directory {
  /** Empty, or with a slash at its end. */
  readonly path: string;
  readonly url: URL;
}

interface FolderRequest {
  readonly client: HttpClient;
  readonly name: string;
  readonly limits: FolderLimits;
  readonly crawl: PlaylistCrawler;
  readonly context: FolderOpeningContext;
}

class FolderOpening {
  readonly #request: FolderRequest;
  #directoryCount = 0;

  constructor(request: FolderRequest) {
    this.#request = request;
  }

  async open(url: URL): Promise<SourceFolder> {
    if (isPlaylistUrl(url)) return await this.#openPage(await this.#page(url), url);
    const { playlistPattern } = this.#request.context;
    if (playlistPattern === undefined || !LITERAL_PATTERN.test(playlistPattern)) return await this.#openFolder(url);
    const path = segmentsOf(playlistPattern).join('/');
    const playlistUrl = urlInside(url, path);
    const page = await unlessMissing(this.#page(playlistUrl));
    if (!(page instanceof AppError)) return await this.#crawlFrom(page, playlistUrl, path);
    // The playlist may lie deeper, where the server lists that; where it does not, the playlist is what is missing.
    const folder = await unlessMissing(this.#openFolder(url));
    if (folder instanceof AppError) throw page;
    return folder;
  }

  /**
   * Opens a folder. Its address ends in a slash, written or not; an address without one may also be that of a playlist.
   * Throws `FOLDER_NOT_LISTED`.
   */
  async #openFolder(url: URL): Promise<SourceFolder> {
    const folderUrl = urlInside(url, '');
    const page = await unlessMissing(this.#page(folderUrl));
    if (!(page instanceof AppError)) return await this.#openPage(page, folderUrl);
    const other = folderUrl.pathname === url.pathname ? page : await unlessMissing(this.#page(url));
    if (!(other instanceof AppError)) return await this.#openPage(other, url);
    throw isListingForbidden(page, url) ? new AppError('FOLDER_NOT_LISTED', { path: shownAddress(url) }) : other;
  }

  async #openPage(page: Page, url: URL): Promise<SourceFolder> {
    if (PLAYLIST_BEGINNING.test(page.bytes.toString('utf8', 0, 4096))) return await this.#crawlFrom(page, url, '');
    const entries = readDirectoryIndex(page.bytes.toString(), page.mediaType, page.url);
    if (entries === null) throw notListed(url);
    const baseUrl = urlInside(page.url, '');
    baseUrl.search = '';
    const files = this.#filesAt(baseUrl);
    await this.#list(files, baseUrl, entries, url.search);
    return await files.folder(url.search, this.#request.context.signal);
  }

  /**
   * Reads a folder by its playlists. `path` is that of the first one in its folder; empty where its own directory
   * is the folder.
   */
  async #crawlFrom(page: Page, url: URL, path: string): Promise<SourceFolder> {
    const isRedirected = page.url.pathname !== url.pathname;
    const depth = isRedirected || path === '' ? 0 : path.split('/').length - 1;
    const baseUrl = new URL('../'.repeat(depth) || '.', page.url);
    const { crawl, context } = this.#request;
    const files = this.#filesAt(baseUrl);
    // Redirected or not, the playlist is called what it was asked for by: patterns are meant for that.
    const entryPath = depth > 0 ? path : nameOfUrl(url.href) || 'playlist';
    files.add(entryPath, url, null);
    files.keep(entryPath, page.bytes, page.url);
    await crawl(files.unlisted(), entryPath, context.signal);
    return await files.folder(null, context.signal);
  }

  /**
   * Lists a directory and all in it, level by level. The query of the folder's address is that of every file in it.
   * Throws `FOLDER_NOT_LISTED`.
   */
  async #list(files: HttpFolderFiles, baseUrl: URL, entries: readonly IndexEntry[], search: string): Promise<void> {
    const { maxDepth } = this.#request.limits;
    let level = this.#take(files, { path: '' }, entries, search);
    for (let depth = 1; level.length > 0; depth += 1) {
      if (depth > maxDepth) throw files.tooLarge('levels of folders', maxDepth);
      const below = await mapConcurrent(level, MAX_CONCURRENT_LISTINGS, async (directory) => {
        const { bytes, mediaType, url } = await this.#page(directory.url);
        const inside = url.href.startsWith(baseUrl.href) ? readDirectoryIndex(bytes.toString(), mediaType, url) : null;
        if (inside === null) throw new AppError('FOLDER_NOT_LISTED', { path: shownAddress(directory.url) });
        return this.#take(files, directory, inside, search);
      });
      level = below.flat();
    }
  }

  /** Takes the files of one directory, and returns the directories in it. */
  #take(
    files: HttpFolderFiles,
    { path }: Pick<Directory, 'path'>,
    entries: readonly IndexEntry[],
    search: string,
  ): Directory[] {
    const { maxFiles } = this.#request.limits;
    const directories: Directory[] = [];
    for (const { name, isFolder, url, sizeBytes } of entries) {
      url.search = search;
      checkSegment(shownAddress(url), name);
      if (!isFolder) {
        files.add(`${path}${name}`, url, sizeBytes);
        continue;
      }
      this.#directoryCount += 1;
      if (this.#directoryCount > maxFiles) throw files.tooLarge('folders', maxFiles);
      directories.push({ path: `${path}${name}/`, url });
    }
    return directories;
  }

  async #page(url: URL): Promise<Page> {
    const { client, context } = this.#request;
    const { signal } = context;
    const { excessCount } = client;
    const { body, headers, url: from } = await client.get(url, PAGE_HEADERS, signal);
    try {
      const bytes = await readBody(body, MAX_PAGE_BYTES);
      if (bytes === null)
        throw new AppError('HTTP_TOO_LARGE', { address: shownAddress(url), limitBytes: MAX_PAGE_BYTES });
      // Bytes beyond the end of the response show two turns of the event loop later.
      await nextTurn();
      await nextTurn();
      if (client.excessCount !== excessCount) throw tooLong(url);
      return { bytes, mediaType: mediaTypeOf(headers), url: from };
    } catch (error) {
      signal.throwIfAborted();
      throw requestError(error, url, client.options.idleTimeoutMs);
    }
  }

  #filesAt(baseUrl: URL): HttpFolderFiles {
    const { client, name, limits, context } = this.#request;
    return new HttpFolderFiles({ client, name, limits, baseUrl, scratch: context.scratch });
  }
}

/** Returns the value of a promise, or its error when that says that a page is missing, forbidden or not a listing. */
async function unlessMissing<T>(found: Promise<T>): Promise<T | AppError> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof AppError && MISSING_REASONS.has(error.reason)) return error;
    throw error;
  }
}

/**
 * Tells whether a server serves files and lists no folders, as nginx does by default. When the
 * address is presigned, it is rather the signature that is wrong.
 */
function isListingForbidden({ reason, details }: AppError, { search }: URL): boolean {
  return reason === 'HTTP_FORBIDDEN' && 'status' in details && details.status === 403 && search === '';
}

/** Returns the error for a page that is neither a playlist nor a list of files. */
function notListed(url: URL): AppError {
  const address = shownAddress(url);
  if (!isPlaylistUrl(url)) return new AppError('FOLDER_NOT_LISTED', { path: address });
  const problem = 'its name is that of a playlist, and it is neither an HLS playlist nor an MPD';
  return new AppError('HTTP_ANSWER_INVALID', { address, problem });
}

function isPlaylistUrl({ pathname }: URL): boolean {
  return /\.(?:m3u8?|mpd)$/i.test(pathname);
}

/** Returns the address of a file in a folder, or of the folder for an empty path. Keeps the query. */
function urlInside(folder: URL, path: string): URL {
  const base = folder.pathname.endsWith('/') ? folder : new URL(`${folder.pathname}/`, folder);
  const url = new URL(segmentsOf(path).map(encodeURIComponent).join('/') || '.', base);
  url.search = folder.search;
  return url;
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter((segment) => segment !== '' && segment !== '.');
}
