import { basename, posix } from 'node:path';
import { type ByteSource, memorySource } from '#bytes/byte-source.ts';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { SourceFolder, UnlistedFolder } from '#bytes/source-folder.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { decodedSegment, safeName } from '../input-name.ts';
import type { FolderLimits } from '../input-opener.ts';
import { checkSegment } from './directory-index.ts';
import type { HttpClient, HttpResponse } from './http-client.ts';
import { ABSENT_REASONS, requestError, shownAddress } from './http-errors.ts';
import { openHttpFile } from './http-file.ts';
import { contentLengthOf, contentRangeOf, type HttpVersion, versionOf } from './http-headers.ts';
import { checkedRange, invalid } from './ranged-source.ts';

/** Concurrent requests for sizes. */
const MAX_CONCURRENT_PROBES = 16;

/** The common properties of all files of an HTTP folder. */
interface HttpFolderContext {
  readonly client: HttpClient;
  readonly name: string;
  /** Ends in `/` and has no query. */
  readonly baseUrl: URL;
  readonly limits: FolderLimits;
  readonly scratch: ScratchSpace;
}

interface FoundFile {
  readonly url: URL;
  /** Null where the size is not known yet. */
  version: HttpVersion | null;
  mayBeMissing: boolean;
  /** Present where it was read while the folder was found. */
  content?: Buffer;
}

/** Collects the files of an HTTP folder, within its limits, and makes it a folder. */
export class HttpFolderFiles {
  readonly #context: HttpFolderContext;
  readonly #files = new Map<string, FoundFile>();
  /** Files that were redirected to another folder when they were opened: players resolve the references in them there. */
  readonly #elsewhere = new Set<string>();
  /** The folder that all files were read from so far; null where there are several. */
  #root: string | null | undefined;

  constructor(context: HttpFolderContext) {
    this.#context = context;
  }

  /** Takes a file by its decoded path; what was found first counts. `sizeBytes` is null where it is not known. */
  add(path: string, url: URL, sizeBytes: number | null, mayBeMissing = false): void {
    const known = this.#files.get(path);
    if (known !== undefined) {
      known.mayBeMissing &&= mayBeMissing;
      return;
    }
    const { maxFiles, maxDepth } = this.#context.limits;
    const segments = path.split('/');
    for (const segment of segments) checkSegment(this.#shownPath, segment);
    if (segments.length - 1 > maxDepth) throw this.tooLarge('levels of folders', maxDepth);
    if (this.#files.size >= maxFiles) throw this.tooLarge('files', maxFiles);
    // Nothing is read of an empty file, so the server is asked for its size.
    const isKnown = sizeBytes !== null && sizeBytes > 0;
    const version = isKnown ? { sizeBytes, etag: null, lastModified: null } : null;
    this.#files.set(path, { url, version, mayBeMissing });
  }

  /**
   * Keeps the content of a file that was taken: one answer of the server for it is enough. `from` is where that came from, if
   * `open` did not read it. Throws `HTTP_TOO_LARGE`.
   */
  keep(path: string, content: Buffer, from?: URL): void {
    const file = this.#files.get(path);
    if (file === undefined) return;
    this.#context.client.requireSize(file.url, content.length);
    if (from !== undefined) this.#noteRead(path, file, from);
    file.content = content;
    file.version = { sizeBytes: content.length, etag: null, lastModified: null };
  }

  /**
   * Requests unknown sizes and returns the folder. Files that the server does not have are left out. `search` is the query of files that
   * a page listed, which may leave some out: somebody may have put it there. It is null for files that playlists name. Throws
   * `FOLDER_EMPTY`.
   */
  async folder(search: string | null, signal: AbortSignal): Promise<SourceFolder> {
    const unknown = [...this.#files].filter(([, { version }]) => version === null);
    await mapConcurrent(unknown, MAX_CONCURRENT_PROBES, async ([path, file]) => {
      file.version = await this.#probe(file, signal);
      this.#context.scratch.heartbeat();
      if (file.version === null) this.#files.delete(path);
    });
    const { maxBytes } = this.#context.limits;
    const sizeBytes = [...this.#files.values()].reduce((sum, { version }) => sum + (version?.sizeBytes ?? 0), 0);
    if (sizeBytes > maxBytes) throw this.tooLarge('bytes', maxBytes);
    if (this.#files.size === 0) throw new AppError('FOLDER_EMPTY', { path: this.#shownPath });
    const files = [...this.#files]
      .map(([path, { version }]) => ({ path, sizeBytes: version?.sizeBytes ?? 0 }))
      .sort((first, second) => (first.path < second.path ? -1 : 1));
    const { name, baseUrl } = this.#context;
    const isElsewhere = (path: string): boolean => this.#root === null && this.#elsewhere.has(path);
    const folder = { name, files, baseUrl: baseUrl.href, open: this.#open, isElsewhere };
    if (search === null) return folder;
    const hides = async (path: string, stop: AbortSignal): Promise<boolean> => {
      const url = this.#addressOf(path);
      url.search = search;
      return !this.#files.has(path) && (await this.#probe({ url, version: null, mayBeMissing: true }, stop)) !== null;
    };
    return { ...folder, hides };
  }

  /** Returns the folder while its files are still being found by following references. */
  unlisted(): UnlistedFolder {
    const { name, baseUrl } = this.#context;
    return {
      name,
      files: [],
      baseUrl: baseUrl.href,
      addFile: (path, url, mayBeMissing) => this.add(path, url, null, mayBeMissing),
      keepFile: (path, content) => this.keep(path, content),
      open: this.#open,
    };
  }

  tooLarge(what: 'files' | 'folders' | 'bytes' | 'levels of folders', limit: number): AppError {
    return new AppError('FOLDER_TOO_LARGE', { path: this.#shownPath, what, limit });
  }

  #addressOf(path: string): URL {
    return new URL(path.split('/').map(encodeURIComponent).join('/'), this.#context.baseUrl);
  }

  get #shownPath(): string {
    return shownAddress(this.#context.baseUrl);
  }

  readonly #open = async (path: string, signal: AbortSignal): Promise<ByteSource> => {
    signal.throwIfAborted();
    const file = this.#files.get(path);
    if (file === undefined) throw new AppError('SOURCE_NOT_FOUND', { path });
    const { client, name, scratch } = this.#context;
    const nameOf = (): string => safeName(basename(path)) || name;
    if (file.content !== undefined) return memorySource(nameOf(), file.content);
    const listed = file.version === null ? {} : { listed: file.version };
    const onAnswer = (from: URL): void => this.#noteRead(path, file, from);
    return await openHttpFile(client, { url: file.url, nameOf, ...listed, onAnswer, signal, scratch });
  };

  /** Notes where a file was read from. */
  #noteRead(path: string, { url }: FoundFile, answered: URL): void {
    const own = decoded(this.#addressOf(path));
    const from = answered.href === url.href ? own : decoded(answered);
    const root = from.endsWith(`/${path}`) ? from.slice(0, -path.length) : from;
    this.#root = this.#root === undefined || this.#root === root ? root : null;
    if (posix.dirname(from) !== posix.dirname(own)) this.#elsewhere.add(path);
  }

  async #probe({ url, mayBeMissing }: FoundFile, signal: AbortSignal): Promise<HttpVersion | null> {
    try {
      return await probeFile(this.#context.client, url, signal);
    } catch (error) {
      const reason = error instanceof AppError ? error.reason : '';
      if (reason === 'HTTP_NOT_FOUND' || (mayBeMissing && ABSENT_REASONS.has(reason))) return null;
      throw error;
    }
  }
}

/** Returns an address without its query, however it is written. */
function decoded({ origin, pathname }: URL): string {
  return origin + pathname.split('/').map(decodedSegment).join('/');
}

/** Finds out how large a file is, and which version of it there is now. Throws `HTTP_TOO_LARGE`. */
export async function probeFile(client: HttpClient, url: URL, signal: AbortSignal): Promise<HttpVersion> {
  const response = await client.get(url, { range: 'bytes=0-0' }, signal);
  try {
    const version = versionOf(response.headers, await sizeOf(client, response, signal));
    client.requireSize(url, version.sizeBytes);
    return version;
  } finally {
    response.body.cancel();
  }
}

async function sizeOf(client: HttpClient, response: HttpResponse, signal: AbortSignal): Promise<number> {
  const { status, headers, url } = response;
  if (status === 416) {
    if (contentRangeOf(headers)?.sizeBytes !== 0) throw invalid(url, 'it has no first byte, and is not empty either');
    return 0;
  }
  const part = checkedRange(response, 0, 1);
  // One byte is read, so that the connection can be used again.
  if (part === null) return contentLengthOf(headers) ?? (await countBytes(client, response, signal));
  await countBytes(client, response, signal);
  return part.sizeBytes ?? (await sizeOfWhole(client, url, signal));
}

/** Returns the size of a file whose ranges do not state it. */
async function sizeOfWhole(client: HttpClient, url: URL, signal: AbortSignal): Promise<number> {
  const response = await client.get(url, {}, signal);
  try {
    if (response.status !== 200) throw invalid(url, `a request without a range was answered ${response.status}`);
    return contentLengthOf(response.headers) ?? (await countBytes(client, response, signal));
  } finally {
    response.body.cancel();
  }
}

/** Counts the bytes of a body that has no stated length. */
async function countBytes(client: HttpClient, { body, url }: HttpResponse, signal: AbortSignal): Promise<number> {
  let sizeBytes = 0;
  try {
    for await (const chunk of body) {
      sizeBytes += chunk.length;
      if (sizeBytes > client.options.maxBytes) break;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw requestError(error, url, client.options.idleTimeoutMs);
  }
  return sizeBytes;
}
