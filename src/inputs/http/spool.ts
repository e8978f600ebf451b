import type { LocalSource } from '#bytes/byte-source.ts';
import {
  createScratchFile,
  openScratchFile,
  type ScratchFile,
  type ScratchSpace,
  writeScratch,
} from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import type { HttpClient, HttpResponse } from './http-client.ts';
import { isTransient, requestError, shownAddress } from './http-errors.ts';
import { contentLengthOf } from './http-headers.ts';
import { invalid } from './ranged-source.ts';

/** Restarts of a download whose connection was lost. */
const MAX_RESTARTS = 2;

/** Scratch space is reserved in steps of this size when the server does not state the size of a file. */
const RESERVED_STEP_BYTES = 64 * 1024 * 1024;

export interface SpoolRequest {
  readonly url: URL;
  readonly name: string;
  readonly claimedMediaType: string | undefined;
  readonly scratch: ScratchSpace;
  readonly signal: AbortSignal;
  /** The answer with the whole file, where there is one already. */
  readonly first?: HttpResponse;
}

/** Fetches a whole file by one answer, which is of one version by itself, into the scratch space. */
export async function spool(client: HttpClient, request: SpoolRequest): Promise<LocalSource> {
  const { url, name, claimedMediaType, scratch, signal } = request;
  let response = request.first;
  for (let restarts = 0; ; restarts += 1) {
    response ??= await client.get(url, {}, signal);
    const file = await scratch.reserve('download', contentLengthOf(response.headers) ?? RESERVED_STEP_BYTES);
    const download = new Download(client, response, file, signal);
    try {
      await download.run();
      return await openScratchFile(file, { name, ...(claimedMediaType !== undefined && { claimedMediaType }) });
    } catch (error) {
      file.release();
      response.body.cancel();
      signal.throwIfAborted();
      if (!isTransient(error, restarts, MAX_RESTARTS)) throw download.brokenOff(error);
      response = undefined;
    }
  }
}

/** One answer on its way into a scratch file. */
class Download {
  readonly #client: HttpClient;
  readonly #response: HttpResponse;
  readonly #file: ScratchFile;
  readonly #signal: AbortSignal;
  #receivedBytes = 0;
  #reservedBytes: number;

  constructor(client: HttpClient, response: HttpResponse, file: ScratchFile, signal: AbortSignal) {
    this.#client = client;
    this.#response = response;
    this.#file = file;
    this.#signal = signal;
    this.#reservedBytes = contentLengthOf(response.headers) ?? RESERVED_STEP_BYTES;
  }

  async run(): Promise<void> {
    const { status, url, body } = this.#response;
    if (status !== 200) throw invalid(url, `a request without a range was answered ${status}`);
    this.#checkSize(contentLengthOf(this.#response.headers) ?? 0);
    const handle = await createScratchFile(this.#file.path);
    try {
      for await (const chunk of body) {
        this.#signal.throwIfAborted();
        this.#reserve(this.#receivedBytes + chunk.length);
        await writeScratch(handle, this.#file.path, chunk, this.#receivedBytes);
        this.#file.heartbeat();
        this.#receivedBytes += chunk.length;
      }
    } finally {
      await handle.close();
    }
  }

  /** Translates the error that ended a download early. */
  brokenOff(cause: unknown): unknown {
    const { url, headers } = this.#response;
    const error = requestError(cause, url, this.#client.options.idleTimeoutMs);
    if (!(error instanceof AppError) || error.reason !== 'HTTP_UNREACHABLE') return error;
    const details = { receivedBytes: this.#receivedBytes, sizeBytes: contentLengthOf(headers) };
    return new AppError('HTTP_CUT_SHORT', { address: shownAddress(url), ...details }, { cause });
  }

  #reserve(sizeBytes: number): void {
    this.#checkSize(sizeBytes);
    while (sizeBytes > this.#reservedBytes) {
      this.#reservedBytes += RESERVED_STEP_BYTES;
      this.#file.extend(this.#reservedBytes);
    }
  }

  #checkSize(sizeBytes: number): void {
    const limitBytes = this.#client.options.maxBytes;
    const address = shownAddress(this.#response.url);
    if (sizeBytes > limitBytes) throw new AppError('HTTP_TOO_LARGE', { address, limitBytes });
  }
}
