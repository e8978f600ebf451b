import { AppError } from '#errors/app-error.ts';
import { shownAddress } from './http-address.ts';
import type { HttpClient, HttpResponse } from './http-client.ts';
import { requestError } from './http-problem.ts';
import { checkedRange, invalid } from './http-ranges.ts';
import { contentLengthOf, contentRangeOf, type HttpVersion, versionOf } from './http-version.ts';

/** Finds out how large a file is, and which version of it there is now. */
export async function probeFile(client: HttpClient, url: URL, signal: AbortSignal): Promise<HttpVersion> {
  const response = await client.get(url, { range: 'bytes=0-0' }, signal);
  try {
    const version = versionOf(response.headers, await sizeOf(client, response, signal));
    const limitBytes = client.options.maxBytes;
    if (version.sizeBytes <= limitBytes) return version;
    throw new AppError('HTTP_TOO_LARGE', { address: shownAddress(url), limitBytes });
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

/** The size of a file of which ranges tell none. */
async function sizeOfWhole(client: HttpClient, url: URL, signal: AbortSignal): Promise<number> {
  const response = await client.get(url, {}, signal);
  try {
    if (response.status !== 200) throw invalid(url, `a request without a range was answered ${response.status}`);
    return contentLengthOf(response.headers) ?? (await countBytes(client, response, signal));
  } finally {
    response.body.cancel();
  }
}

/** Where nothing tells the size of a file, the whole of it has to be seen. */
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
