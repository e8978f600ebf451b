import type { ByteSource } from '#bytes/byte-source.ts';
import { ReadAhead } from '#bytes/read-ahead.ts';
import { AppError } from '#errors/app-error.ts';
import type { HttpClient } from './http-client.ts';
import { fetchRange, type RangedFile, tooLong } from './http-ranges.ts';

/** A file on a server that gives ranges of it. Every range is of the version that was opened, or an error. */
export class HttpSource implements ByteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly claimedMediaType?: string;
  readonly #readAhead: ReadAhead;
  readonly #client: HttpClient;
  readonly #file: RangedFile;
  readonly #excessCount: number;

  constructor(client: HttpClient, file: RangedFile, head: Buffer, claimedMediaType: string | undefined) {
    this.#client = client;
    this.#file = file;
    this.#excessCount = client.excessCount;
    this.name = file.name;
    this.sizeBytes = file.version.sizeBytes;
    if (claimedMediaType !== undefined) this.claimedMediaType = claimedMediaType;
    this.#readAhead = new ReadAhead({
      name: file.name,
      sizeBytes: file.version.sizeBytes,
      head,
      fetch: (offset, length, signal) => fetchRange(client, file, offset, length, signal),
    });
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    await this.#readAhead.read(target, offset, signal);
  }

  /** Only afterwards can be told that what was read was less than what was sent. */
  async checkUnchanged(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#client.excessCount !== this.#excessCount) throw tooLong(this.#file.url);
  }

  close(): Promise<void> {
    this.#readAhead.close();
    return Promise.resolve();
  }
}

/** A file without content. */
export class EmptySource implements ByteSource {
  readonly name: string;
  readonly sizeBytes = 0;

  constructor(name: string) {
    this.name = name;
  }

  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (target.length > 0) throw new AppError('SOURCE_ENDED_EARLY', { name: this.name, offset, sizeBytes: 0 });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
