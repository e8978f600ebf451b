import type { ByteSource } from '#bytes/byte-source.ts';
import { ReadAhead } from '#bytes/read-ahead.ts';
import { AppError } from '#errors/app-error.ts';
import type { HttpClient, HttpResponse } from './http-client.ts';
import { isTransient, requestError, shownAddress } from './http-errors.ts';
import {
  contentLengthOf,
  contentRangeOf,
  type HttpVersion,
  ifRangeHeader,
  isSameVersion,
  versionOf,
} from './http-headers.ts';

/** Resumptions of one range after a lost connection. */
const MAX_RESUMPTIONS = 5;

/** A server may answer with a shorter range than requested; below this size it counts as a lost connection. */
const MIN_PART_BYTES = 64 * 1024;

/** One version of a file that is fetched in ranges. */
export interface RangedFile {
  readonly url: URL;
  readonly name: string;
  readonly version: HttpVersion;
}

/**
 * Streams exactly the bytes `[offset, offset + length)` of one version of a file. Rejects with SOURCE_CHANGED as soon as
 * the server has another one, so that what was read is never a mixture.
 */
export async function* fetchRange(
  client: HttpClient,
  file: RangedFile,
  offset: number,
  length: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void> {
  let doneBytes = 0;
  for (let resumptions = 0; doneBytes < length; ) {
    const startedAt = doneBytes;
    const response = await getRange(client, file, offset + doneBytes, length - doneBytes, signal);
    try {
      for await (const chunk of response.body) {
        doneBytes += chunk.length;
        if (doneBytes > length) throw tooLong(file.url);
        yield chunk;
      }
    } catch (error) {
      signal.throwIfAborted();
      if (!isTransient(error, resumptions, MAX_RESUMPTIONS)) throw brokenOff(client, file, error, offset + doneBytes);
      resumptions += 1;
      continue;
    }
    if (doneBytes === length || doneBytes - startedAt >= MIN_PART_BYTES) continue;
    if (resumptions >= MAX_RESUMPTIONS) throw cutShort(file, offset + doneBytes);
    resumptions += 1;
  }
}

async function getRange(
  client: HttpClient,
  { url, name, version }: RangedFile,
  offset: number,
  length: number,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const range = `bytes=${offset}-${offset + length - 1}`;
  // Some servers answer every If-Range with the whole file, though it is the version that was meant: they are asked plainly.
  for (const condition of [ifRangeHeader(version), {}]) {
    const response = await client.get(url, { range, ...condition }, signal);
    try {
      const part = checkedRange(response, offset, length);
      const wholeBytes = part === null ? contentLengthOf(response.headers) : part.sizeBytes;
      const sizeBytes = wholeBytes ?? version.sizeBytes;
      const isSame = response.status !== 416 && isSameVersion(versionOf(response.headers, sizeBytes), version);
      if (!isSame) throw new AppError('SOURCE_CHANGED', { name });
      if (part !== null) return response;
      response.body.cancel();
    } catch (error) {
      response.body.cancel();
      throw error;
    }
  }
  throw invalid(url, 'the server gave ranges of it at first, and now it does not');
}

/**
 * Returns the range that an answer holds, and the size of the whole file, null where the server does not know it (RFC
 * 9110 §14.4). Null where the answer is not ranged: the file is another one, or shorter. Throws HTTP_ANSWER_INVALID
 * where the range is not the one that was asked for.
 */
export function checkedRange(
  { status, headers, url }: HttpResponse,
  offset: number,
  length: number,
): { readonly sizeBytes: number | null; readonly length: number } | null {
  if (status !== 206) return null;
  const told = contentRangeOf(headers);
  const range = told?.range ?? null;
  if (told === null || range === null || range.first !== offset || range.last >= offset + length) {
    throw invalid(url, 'its Content-Range is not the range that was asked for');
  }
  const rangeLength = range.last - range.first + 1;
  const bodyLength = contentLengthOf(headers);
  if (bodyLength !== null && bodyLength !== rangeLength) {
    throw invalid(url, 'its Content-Length and its Content-Range contradict each other');
  }
  return { sizeBytes: told.sizeBytes, length: rangeLength };
}

export function invalid(url: URL, problem: string): AppError {
  return new AppError('HTTP_ANSWER_INVALID', { address: shownAddress(url), problem });
}

export function tooLong(url: URL): AppError {
  return invalid(url, 'it is longer than the server said');
}

function cutShort({ url, version }: RangedFile, receivedBytes: number): AppError {
  const { sizeBytes } = version;
  return new AppError('HTTP_CUT_SHORT', { address: shownAddress(url), receivedBytes, sizeBytes });
}

function brokenOff(client: HttpClient, file: RangedFile, error: unknown, receivedBytes: number): unknown {
  const translated = requestError(error, file.url, client.options.idleTimeoutMs);
  const isLost = translated instanceof AppError && translated.reason === 'HTTP_UNREACHABLE';
  return isLost ? cutShort(file, receivedBytes) : translated;
}

/** Opens a file on a server that gives ranges of it. Every range is of this version, or an error. */
export function openRanged(
  client: HttpClient,
  file: RangedFile,
  head: Buffer,
  claimedMediaType: string | undefined,
): ByteSource {
  const { name, url, version } = file;
  const { sizeBytes } = version;
  const { excessCount } = client;
  const fetch = (offset: number, length: number, signal: AbortSignal) =>
    fetchRange(client, file, offset, length, signal);
  const readAhead = new ReadAhead({ name, sizeBytes, head, fetch });
  return {
    name,
    sizeBytes,
    ...(claimedMediaType !== undefined && { claimedMediaType }),
    read: (target, offset, signal) => readAhead.read(target, offset, signal),
    /** Throws `HTTP_ANSWER_INVALID` when a body was longer than its length, which shows only after it was read. */
    async checkUnchanged(signal) {
      signal.throwIfAborted();
      if (client.excessCount !== excessCount) throw tooLong(url);
    },
    close: async () => readAhead.close(),
  };
}
