import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ByteSource, LocalSource } from '#bytes/byte-source.ts';
import {
  createScratchFile,
  openScratchFile,
  type ScratchFile,
  type ScratchSpace,
  writeScratch,
} from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import { inputName, nameOfUrl } from '../input-name.ts';
import type { FileOpener } from '../input-opener.ts';
import type { HttpClient, HttpResponse } from './http-client.ts';
import { isTransient, requestError, shownAddress } from './http-errors.ts';
import {
  contentLengthOf,
  contentRangeOf,
  fileNameOf,
  type HttpVersion,
  isPinned,
  isSameVersion,
  mediaTypeOf,
  versionOf,
} from './http-headers.ts';
import { checkedRange, fetchRange, invalid, openRanged, type RangedFile, tooLong } from './ranged-source.ts';

/** Bytes that the opening request reads: enough for the headers of most formats, and all of a small file. */
const HEAD_BYTES = 2 * 1024 * 1024;

/** Returns the opener of `remote_file_url` with the schemes `https://` and `http://`. */
export function httpFileOpener(client: HttpClient): FileOpener<'remote_file_url'> {
  return async ({ url, filename_hint: hint }, inputIndex, { signal, scratch }) => {
    const nameOf: NameSource = (served) => inputName([hint, served, nameOfUrl(url)], inputIndex);
    const source = await openHttpFile(client, { url: new URL(url), nameOf, signal, scratch });
    if (source.sizeBytes > 0) return source;
    await source.close();
    throw new AppError('SOURCE_EMPTY', { path: shownAddress(new URL(url)) });
  };
}

/** Returns the name of a source, given the name that the server states for the file. */
type NameSource = (servedName: string | undefined) => string;

export interface HttpFileRequest {
  readonly url: URL;
  readonly nameOf: NameSource;
  /** The version that was listed; opening another one throws `SOURCE_CHANGED`. */
  readonly listed?: HttpVersion;
  /** Takes the address that the file was read from, after all redirects. */
  readonly onAnswer?: (from: URL) => void;
  readonly signal: AbortSignal;
  readonly scratch: ScratchSpace;
}

/**
 * Opens a file that a server has. If the server gives ranges and says which version they are of, the file is read at
 * random; where not, it is spooled to the scratch space. Closing the source releases either. Throws `SOURCE_CHANGED`,
 * `HTTP_…`, and the errors of the scratch space.
 */
export async function openHttpFile(client: HttpClient, request: HttpFileRequest): Promise<ByteSource> {
  const { excessCount } = client;
  const response = await client.get(request.url, { range: `bytes=0-${HEAD_BYTES - 1}` }, request.signal);
  request.onAnswer?.(response.url);
  try {
    const source = await openAnswered(client, request, response);
    // Bytes beyond the end of the response show one turn of the event loop later.
    await nextTurn();
    const isAsListed = request.listed === undefined || request.listed.sizeBytes === source.sizeBytes;
    if (isAsListed && client.excessCount === excessCount) return source;
    await source.close();
    throw isAsListed ? tooLong(request.url) : new AppError('SOURCE_CHANGED', { name: source.name });
  } finally {
    response.body.cancel();
  }
}

async function openAnswered(client: HttpClient, request: HttpFileRequest, response: HttpResponse): Promise<ByteSource> {
  const { headers, url } = response;
  const named = {
    name: request.nameOf(fileNameOf(headers['content-disposition'])),
    claimedMediaType: mediaTypeOf(headers),
  };
  if (response.status === 416) return emptyFile(client, request, response, named.name);
  const part = checkedRange(response, 0, HEAD_BYTES);
  if (part === null) {
    const sizeBytes = contentLengthOf(headers) ?? request.listed?.sizeBytes ?? 0;
    checkVersion(request, named.name, versionOf(headers, sizeBytes));
    return await spool(client, { ...request, ...named, first: response });
  }
  const { sizeBytes } = part;
  const version = versionOf(headers, sizeBytes ?? request.listed?.sizeBytes ?? 0);
  checkVersion(request, named.name, version);
  client.requireSize(url, version.sizeBytes);
  if (sizeBytes === null || !isPinned(version)) return await spool(client, { ...request, ...named });
  // The requested address, not the target of its redirects, which may be valid for a minute only.
  const file = { url: request.url, name: named.name, version };
  const head = await readHead(client, file, response, part.length, request.signal);
  return openRanged(client, file, head, named.claimedMediaType);
}

/** Reads the first bytes from the answer that is there, and on from where it breaks off. */
async function readHead(
  client: HttpClient,
  file: RangedFile,
  { body }: HttpResponse,
  length: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const head = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  const take = (chunk: Buffer): void => {
    if (filled + chunk.length > length) throw tooLong(file.url);
    head.set(chunk, filled);
    filled += chunk.length;
  };
  try {
    for await (const chunk of body) take(chunk);
  } catch (error) {
    signal.throwIfAborted();
    if (!isTransient(error, 0, 1)) throw requestError(error, file.url, client.options.idleTimeoutMs);
  }
  if (filled < length) for await (const chunk of fetchRange(client, file, filled, length - filled, signal)) take(chunk);
  return head;
}

/** Opens an empty file, of which no range can be had (RFC 9110 §15.5.17). */
function emptyFile(
  client: HttpClient,
  request: HttpFileRequest,
  { headers, url }: HttpResponse,
  name: string,
): ByteSource {
  if (contentRangeOf(headers)?.sizeBytes !== 0) throw invalid(url, 'it has no first bytes, and is not empty either');
  const version = versionOf(headers, 0);
  checkVersion(request, name, version);
  return openRanged(client, { url: request.url, name, version }, Buffer.alloc(0), undefined);
}

function checkVersion({ listed }: HttpFileRequest, name: string, version: HttpVersion): void {
  if (listed !== undefined && !isSameVersion(listed, version)) throw new AppError('SOURCE_CHANGED', { name });
}

/** Restarts of a download whose connection was lost. */
const MAX_RESTARTS = 2;

/** Scratch space is reserved in steps of this size when the server does not state the size of a file. */
const RESERVED_STEP_BYTES = 64 * 1024 * 1024;

interface SpoolRequest {
  readonly url: URL;
  readonly name: string;
  readonly claimedMediaType: string | undefined;
  readonly scratch: ScratchSpace;
  readonly signal: AbortSignal;
  /** The answer with the whole file, where there is one already. */
  readonly first?: HttpResponse;
}

/** Fetches a whole file by one answer, which is of one version by itself, into the scratch space. */
async function spool(client: HttpClient, request: SpoolRequest): Promise<LocalSource> {
  const { url, name, claimedMediaType, scratch, signal } = request;
  let response = request.first;
  for (let restarts = 0; ; restarts += 1) {
    response ??= await client.get(url, {}, signal);
    const file = await scratch.reserve('download', contentLengthOf(response.headers) ?? RESERVED_STEP_BYTES);
    const received = { bytes: 0 };
    try {
      await download(client, response, file, received, signal);
      return await openScratchFile(file, { name, ...(claimedMediaType !== undefined && { claimedMediaType }) });
    } catch (error) {
      file.release();
      response.body.cancel();
      signal.throwIfAborted();
      if (!isTransient(error, restarts, MAX_RESTARTS)) throw brokenOff(client, response, received.bytes, error);
      response = undefined;
    }
  }
}

/** Writes an answer into a scratch file, and counts the bytes that it has received. */
async function download(
  client: HttpClient,
  { status, headers, url, body }: HttpResponse,
  file: ScratchFile,
  received: { bytes: number },
  signal: AbortSignal,
): Promise<void> {
  if (status !== 200) throw invalid(url, `a request without a range was answered ${status}`);
  const statedBytes = contentLengthOf(headers);
  client.requireSize(url, statedBytes ?? 0);
  let reservedBytes = statedBytes ?? RESERVED_STEP_BYTES;
  const handle = await createScratchFile(file.path);
  try {
    for await (const chunk of body) {
      signal.throwIfAborted();
      const sizeBytes = received.bytes + chunk.length;
      client.requireSize(url, sizeBytes);
      while (sizeBytes > reservedBytes) {
        reservedBytes += RESERVED_STEP_BYTES;
        file.extend(reservedBytes);
      }
      await writeScratch(handle, file.path, chunk, received.bytes);
      file.heartbeat();
      received.bytes = sizeBytes;
    }
  } finally {
    await handle.close();
  }
}

/** Translates the error that ended a download early. */
function brokenOff(client: HttpClient, { url, headers }: HttpResponse, receivedBytes: number, cause: unknown): unknown {
  const error = requestError(cause, url, client.options.idleTimeoutMs);
  if (!(error instanceof AppError) || error.reason !== 'HTTP_UNREACHABLE') return error;
  const details = { receivedBytes, sizeBytes: contentLengthOf(headers) };
  return new AppError('HTTP_CUT_SHORT', { address: shownAddress(url), ...details }, { cause });
}
