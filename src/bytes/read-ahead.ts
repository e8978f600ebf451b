import assert from 'node:assert/strict';
import { raceAbort } from '#concurrency/race-abort.ts';
import { AppError } from '#errors/app-error.ts';
import { freeMemory } from './buffers.ts';

/**
 * Streams exactly the bytes `[offset, offset + length)` of a remote source, in pieces that are valid until the next one
 * is requested. May be called concurrently for several ranges. Stops when the signal is aborted, and retries transient
 * errors before it throws.
 */
type RangeFetch = (offset: number, length: number, signal: AbortSignal) => AsyncIterable<Uint8Array>;

const MIB = 1024 * 1024;
/** Smallest first fetch at a new position: headers are close together. */
const MIN_FETCH_SIZE_BYTES = 256 * 1024;
/** Factor by which fetches of sequential reads grow, up to the maximum. */
const FETCH_GROWTH = 4;
const MAX_FETCH_SIZE_BYTES = 4 * MIB;
/** Largest source that is fetched completely at its first read. */
const MAX_WHOLE_FETCH_BYTES = 4 * MIB;
/** Largest gap between reads that still counts as sequential: fetching it takes about as long as a round trip. */
const MAX_GAP_BYTES = 2 * MIB;
/** Largest number of concurrent fetches ahead of the reader. */
const MAX_CONCURRENT_FETCHES = 5;
/** Memory for prefetched bytes, running fetches included. */
const PREFETCH_LIMIT_BYTES = 24 * MIB;
/** Largest number of buffers of the maximum size that are kept for later fetches. */
const MAX_SPARE_BUFFERS = 2;

/** Memory shared by sources that are read concurrently. */
export class PrefetchBudget {
  /** Nothing is prefetched beyond this limit. Requested bytes are fetched in any case. */
  readonly limitBytes = PREFETCH_LIMIT_BYTES;
  usedBytes = 0;
}

interface RemoteSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly fetch: RangeFetch;
  /** First bytes, where they are known already; the buffer changes owner. */
  readonly head?: Buffer;
  /** Shared with the sources that are read concurrently; a single source needs none. */
  readonly memory?: PrefetchBudget;
}

/**
 * Reads a remote source at random offsets, and prefetches for sequential reads: a read that continues another one
 * starts larger and larger concurrent fetches ahead of it, so that the reader is limited by the network's throughput
 * and not by its latency. Memory is bounded by `PrefetchBudget` and the requests of concurrent reads.
 */
export class ReadAhead {
  readonly #source: RemoteSource;
  readonly #memory: PrefetchBudget;
  /** Ranges in memory, in no order. */
  readonly #ranges: FetchedRange[] = [];
  readonly #spare: Buffer[] = [];
  /**
   * Position and size of the next fetch of the sequential reads, and whether there are any: a single
   * read prefetches nothing.
   */
  #nextFetch = 0;
  #fetchSizeBytes = 0;
  #isSequential = false;
  #uses = 0;
  #closed = false;

  constructor(source: RemoteSource) {
    this.#source = source;
    const { head, memory = new PrefetchBudget() } = source;
    this.#memory = memory;
    if (head === undefined || head.length === 0) return;
    this.#add(new FetchedRange(0, head.length, head, head.length));
    this.#nextFetch = head.length;
    this.#fetchSizeBytes = Math.min(head.length, MAX_FETCH_SIZE_BYTES);
  }

  /** Fills `target` completely from `offset`. Throws `SOURCE_ENDED_EARLY` past the end, and the errors of the fetch. */
  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { name, sizeBytes } = this.#source;
    if (offset + target.length > sizeBytes)
      throw new AppError('SOURCE_ENDED_EARLY', { name, offset: sizeBytes, sizeBytes });
    for (let done = 0; done < target.length; ) {
      const position = offset + done;
      const range = this.#rangeAt(position) ?? this.#fetchAt(position, target.length - done);
      const length = Math.min(range.end - position, target.length - done);
      await this.#readFrom(range, target.subarray(done, done + length), position, signal);
      done += length;
    }
  }

  /** Stops all fetches and frees the memory. Safe to call again. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const range of [...this.#ranges]) this.#drop(range);
    for (const buffer of this.#spare.splice(0)) freeMemory(buffer);
  }

  async #readFrom(range: FetchedRange, target: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    range.lastUse = ++this.#uses;
    range.readers += 1;
    try {
      if (this.#isSequential && position <= this.#nextFetch) this.#fetchAhead(position);
      await range.copyTo(target, position, signal);
    } finally {
      range.readers -= 1;
    }
  }

  #rangeAt(position: number): FetchedRange | undefined {
    return this.#ranges.find((range) => range.covers(position) && !range.hasFailed);
  }

  /** Starts a fetch for a read whose bytes are not in memory. */
  #fetchAt(position: number, wanted: number): FetchedRange {
    const { sizeBytes } = this.#source;
    const isWhole = sizeBytes <= MAX_WHOLE_FETCH_BYTES && this.#ranges.length === 0;
    const continues =
      this.#fetchSizeBytes > 0 && position >= this.#nextFetch && position <= this.#nextFetch + MAX_GAP_BYTES;
    this.#isSequential = continues && !isWhole;
    if (this.#isSequential) {
      this.#growFetches();
    } else {
      this.#dropUnused();
      this.#fetchSizeBytes = isWhole
        ? sizeBytes
        : Math.min(Math.max(wanted, MIN_FETCH_SIZE_BYTES), MAX_FETCH_SIZE_BYTES);
    }
    const isFree = this.#freeCapacity(this.#fetchSizeBytes);
    if (!isFree && !isWhole)
      this.#fetchSizeBytes = Math.min(this.#fetchSizeBytes, Math.max(wanted, MIN_FETCH_SIZE_BYTES));
    return this.#fetch(isWhole ? 0 : position);
  }

  #growFetches(): void {
    this.#fetchSizeBytes = Math.min(this.#fetchSizeBytes * FETCH_GROWTH, MAX_FETCH_SIZE_BYTES);
  }

  /** Prefetches behind the last fetch, within the limits of distance, concurrency and memory. */
  #fetchAhead(position: number): void {
    const { sizeBytes } = this.#source;
    while (this.#nextFetch < sizeBytes && this.#nextFetch - position < MAX_CONCURRENT_FETCHES * this.#fetchSizeBytes) {
      const range = this.#rangeAt(this.#nextFetch);
      if (range !== undefined) {
        this.#nextFetch = range.end;
        continue;
      }
      if (this.#ranges.filter((range) => range.isFetching).length >= MAX_CONCURRENT_FETCHES) return;
      if (!this.#freeCapacity(this.#fetchSizeBytes)) return;
      this.#fetch(this.#nextFetch);
      this.#growFetches();
    }
  }

  /** Starts a fetch of the current size, up to the next range in memory. */
  #fetch(start: number): FetchedRange {
    assert(!this.#closed, 'a source is read before it is closed');
    const { sizeBytes, fetch } = this.#source;
    const end = this.#ranges.reduce(
      (nearest, range) => (range.offset > start && !range.hasFailed ? Math.min(nearest, range.offset) : nearest),
      Math.min(start + this.#fetchSizeBytes, sizeBytes),
    );
    const length = end - start;
    const range = new FetchedRange(start, length, this.#bufferOf(length));
    this.#add(range);
    this.#nextFetch = end;
    void range.fill((signal) => fetch(start, length, signal));
    return range;
  }

  /**
   * Drops the least recently used ranges until `bytes` more fit into the limit. Returns false where that is not enough.
   */
  #freeCapacity(bytes: number): boolean {
    for (const range of this.#ranges.filter(({ hasFailed }) => hasFailed)) this.#drop(range);
    while (this.#memory.usedBytes + bytes > this.#memory.limitBytes) {
      const [oldest] = this.#ranges
        .filter(({ readers, lastUse }) => readers === 0 && lastUse > 0)
        .sort((first, second) => first.lastUse - second.lastUse);
      if (oldest === undefined) return false;
      this.#drop(oldest);
    }
    return true;
  }

  /** Drops prefetched ranges that were never read, when reads are no longer sequential. */
  #dropUnused(): void {
    for (const range of this.#ranges.filter(({ readers, lastUse }) => readers === 0 && lastUse === 0))
      this.#drop(range);
  }

  #add(range: FetchedRange): void {
    this.#ranges.push(range);
    this.#memory.usedBytes += range.length;
  }

  #drop(range: FetchedRange): void {
    this.#ranges.splice(this.#ranges.indexOf(range), 1);
    this.#memory.usedBytes -= range.length;
    range.fail(new Error('the fetched range is not needed any more'));
    const isSpare = range.buffer.length === MAX_FETCH_SIZE_BYTES && this.#spare.length < MAX_SPARE_BUFFERS;
    if (isSpare) this.#spare.push(range.buffer);
    else if (range.readers === 0) freeMemory(range.buffer);
  }

  #bufferOf(length: number): Buffer {
    return (length === MAX_FETCH_SIZE_BYTES ? this.#spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(length);
  }
}

/** Reader that waits for the bytes up to a position. */
interface Waiter {
  readonly upTo: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** Range of a source that is fetched into memory. Its first bytes can be read while the rest is still being fetched. */
class FetchedRange {
  readonly offset: number;
  readonly length: number;
  /** Number of reads in progress. While there are any, the buffer must stay. */
  readers = 0;
  /** Sequence number of the last read, to find the least recently used range; 0 for a range that was never read. */
  lastUse = 0;
  readonly buffer: Buffer;
  readonly #stop = new AbortController();
  readonly #waiters = new Set<Waiter>();
  #filled: number;
  #failure: { readonly error: unknown } | null = null;

  /** Takes a buffer of at least `length` bytes, of which the first `filled` are present. */
  constructor(offset: number, length: number, buffer: Buffer, filled = 0) {
    this.offset = offset;
    this.length = length;
    this.buffer = buffer;
    this.#filled = filled;
  }

  get end(): number {
    return this.offset + this.length;
  }

  /** True until all bytes are present, or the fetch has failed. */
  get isFetching(): boolean {
    return this.#filled < this.length && this.#failure === null;
  }

  get hasFailed(): boolean {
    return this.#failure !== null;
  }

  covers(position: number): boolean {
    return position >= this.offset && position < this.end;
  }

  /** Fills the range with the bytes that `fetch` streams. Never rejects: readers get the error. */
  async fill(fetch: (signal: AbortSignal) => AsyncIterable<Uint8Array>): Promise<void> {
    try {
      for await (const bytes of fetch(this.#stop.signal)) {
        if (this.#failure !== null) return;
        assert(this.#filled + bytes.length <= this.length, 'a fetch streams no more than was requested');
        this.buffer.set(bytes, this.#filled);
        this.#filled += bytes.length;
        this.#wake();
      }
      assert(this.#filled === this.length || this.#failure !== null, 'a fetch streams all that was requested');
    } catch (error) {
      this.fail(error);
    }
  }

  /**
   * Copies the bytes from `position`, which the range covers, as soon as they are present. Throws the error
   * of the fetch.
   */
  async copyTo(target: Uint8Array, position: number, signal: AbortSignal): Promise<void> {
    const start = position - this.offset;
    if (this.#filled < start + target.length) await this.#waitFor(start + target.length, signal);
    target.set(this.buffer.subarray(start, start + target.length));
  }

  /** Stops the fetch with an error, which waiting readers get. */
  fail(error: unknown): void {
    if (this.#failure !== null) return;
    // When all bytes are present, only the end of the response is missing, after which its connection can be reused.
    if (this.isFetching) this.#stop.abort(error);
    this.#failure = { error };
    for (const { reject } of this.#waiters) reject(error);
    this.#waiters.clear();
  }

  async #waitFor(upTo: number, signal: AbortSignal): Promise<void> {
    if (this.#failure !== null) throw this.#failure.error;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter = { upTo, resolve, reject };
    this.#waiters.add(waiter);
    try {
      await raceAbort(promise, signal);
    } finally {
      this.#waiters.delete(waiter);
    }
  }

  #wake(): void {
    for (const waiter of this.#waiters) {
      if (waiter.upTo > this.#filled) continue;
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }
}
