import { freeMemory } from '#bytes/buffers.ts';

/** Pauses the connection while more unread bytes than this are buffered, and resumes it below the second limit. */
const PAUSE_ABOVE_BYTES = 2 * 1024 * 1024;
const RESUME_BELOW_BYTES = 512 * 1024;

/** The same limits in chunks: a server may send one byte at a time, and each chunk costs a hundred bytes here. */
const PAUSE_ABOVE_CHUNKS = 4096;
const RESUME_BELOW_CHUNKS = 1024;

/** Joins small chunks up to this size. */
const GATHERED_BYTES = 16 * 1024;

/** Least number of bytes per idle timeout: a server that sends less counts as silent. */
const MIN_BYTES_PER_WATCH = 16 * 1024;

/** The connection of a body, as far as the body controls it. */
interface Connection {
  pause(): void;
  resume(): void;
  abort(reason: Error): void;
}

/** The server fell silent, or as good as, in the middle of a body. */
class SilentServerError extends Error {
  readonly code = 'SILENT_SERVER';
}

/**
 * The body of an answer as it comes: read once, in order, and no faster taken from the network than it is read. A chunk is
 * valid until the next one is asked for.
 */
export class ResponseBody implements AsyncIterable<Buffer> {
  readonly #connection: Connection;
  readonly #chunks: Buffer[] = [];
  readonly #watch: NodeJS.Timeout;
  #bufferedBytes = 0;
  #bytesSinceWatch = 0;
  #paused = false;
  #ended = false;
  #failure: { readonly error: unknown } | null = null;
  #wake: (() => void) | null = null;

  constructor(connection: Connection, idleTimeoutMs: number) {
    this.#connection = connection;
    this.#watch = setInterval(() => this.#look(), idleTimeoutMs);
  }

  push(chunk: Buffer): void {
    if (this.#ended || this.#failure !== null) return;
    this.#bytesSinceWatch += chunk.length;
    this.#bufferedBytes += chunk.length;
    this.#chunks.push(chunk);
    const isFull = this.#bufferedBytes > PAUSE_ABOVE_BYTES || this.#chunks.length > PAUSE_ABOVE_CHUNKS;
    if (!this.#paused && isFull) {
      this.#paused = true;
      this.#connection.pause();
    }
    this.#wake?.();
  }

  end(): void {
    clearInterval(this.#watch);
    this.#ended = true;
    this.#wake?.();
  }

  fail(error: unknown): void {
    clearInterval(this.#watch);
    this.#failure ??= { error };
    this.#wake?.();
  }

  /** Drops unread bytes, and closes the connection when more would come. Safe to call again. */
  cancel(): void {
    if (this.#ended || this.#failure !== null) return;
    const reason = new Error('the rest of the body is not needed');
    this.fail(reason);
    this.#chunks.length = 0;
    this.#connection.abort(reason);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer, void> {
    try {
      for (;;) {
        const chunk = this.#next();
        if (chunk !== undefined) {
          this.#taken(chunk.length);
          yield chunk;
          freeMemory(chunk);
        } else if (this.#failure !== null) {
          throw this.#failure.error;
        } else if (this.#ended) {
          return;
        } else {
          await this.#more();
        }
      }
    } finally {
      this.cancel();
    }
  }

  /** Returns the next chunk, or several small ones joined; undefined when none is buffered. */
  #next(): Buffer | undefined {
    let [count, sizeBytes] = [0, 0];
    for (const { length } of this.#chunks) {
      if (count > 0 && sizeBytes + length > GATHERED_BYTES) break;
      count += 1;
      sizeBytes += length;
    }
    return count <= 1 ? this.#chunks.shift() : Buffer.concat(this.#chunks.splice(0, count), sizeBytes);
  }

  async #more(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await promise;
    this.#wake = null;
  }

  #taken(bytes: number): void {
    this.#bufferedBytes -= bytes;
    if (!this.#paused || this.#bufferedBytes > RESUME_BELOW_BYTES || this.#chunks.length > RESUME_BELOW_CHUNKS) return;
    this.#paused = false;
    this.#bytesSinceWatch = MIN_BYTES_PER_WATCH; // The pause was ours.
    this.#connection.resume();
  }

  #look(): void {
    if (!this.#paused && this.#bytesSinceWatch < MIN_BYTES_PER_WATCH) {
      const error = new SilentServerError('the server sends no more');
      this.fail(error);
      this.#connection.abort(error);
    }
    this.#bytesSinceWatch = 0;
  }
}

/** Reads a body of at most `limitBytes`; null where it has more. */
export async function readBody(body: ResponseBody, limitBytes: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let sizeBytes = 0;
  for await (const chunk of body) {
    sizeBytes += chunk.length;
    if (sizeBytes > limitBytes) return null;
    chunks.push(Buffer.from(chunk));
  }
  return Buffer.concat(chunks, sizeBytes);
}
