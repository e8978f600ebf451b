import assert from 'node:assert/strict';
import { AppError } from '#errors/app-error.ts';
import { FetchedRange } from './fetched-range.ts';
import { freeMemory } from './free-memory.ts';

/**
 * Streams exactly the bytes `[offset, offset + length)` of something far away, in pieces that are valid until the next one
 * is asked for. May be called for several ranges at once; it gives up when the signal is aborted, and has repeated what
 * could be repeated before it throws.
 */
export type RangeFetch = (offset: number, length: number, signal: AbortSignal) => AsyncIterable<Uint8Array>;

const MIB = 1024 * 1024;

/** A fetch somewhere new takes as much as was asked for, and at least so much: headers lie close together. */
const SMALLEST_FETCH_BYTES = 256 * 1024;

/** Where reads go on from one another, each fetch is so many times as large as the one before, up to the largest. */
const FETCH_GROWTH = 4;
const LARGEST_FETCH_BYTES = 4 * MIB;

/** A source of up to so many bytes is fetched whole when it is first read. */
const FETCHED_WHOLE_BYTES = 4 * MIB;

/** A gap up to so large is read over rather than jumped over: a round trip takes about as long. */
const GAP_BYTES = 2 * MIB;

/** Fetches ahead of the reader at once, and what is held at most to have been read ahead, fetches included. */
const FETCHES_AHEAD = 5;
const HELD_BYTES = 24 * MIB;

/** Buffers of the largest size that are kept for the next fetches. */
const MAX_SPARE_BUFFERS = 2;

/** What is held in memory by sources that are read side by side, together. */
export class HeldBytes {
  /** What was asked for at once is held whatever there is already; nothing is read ahead beyond this. */
  readonly limit = HELD_BYTES;
  held = 0;
}

interface FarSource {
  readonly name: string;
  readonly sizeBytes: number;
  readonly fetch: RangeFetch;
  /** Its first bytes, where they are known already: handed over with it. */
  readonly head?: Buffer;
  /** Shared with the sources that are read at the same time; a source alone needs none. */
  readonly memory?: HeldBytes;
}

/**
 * Reads at random from far away what is mostly read in order: a read that goes on where another ended sets off larger
 * and larger fetches ahead of it, several at once, so that the reader waits for the network's speed and not for its
 * round trips. Memory is bounded by `HeldBytes`, and what reads that run side by side ask for.
 */
export class ReadAhead {
  readonly #source: FarSource;
  readonly #memory: HeldBytes;
  /** What is held, in no order. */
  readonly #ranges: FetchedRange[] = [];
  readonly #spare: Buffer[] = [];
  /** Where the present run of reads will fetch next, how much, and whether it is one: a single read sets off nothing. */
  #runEnd = 0;
  #fetchBytes = 0;
  #isRun = false;
  #uses = 0;
  #closed = false;

  constructor(source: FarSource) {
    this.#source = source;
    const { head, memory = new HeldBytes() } = source;
    this.#memory = memory;
    if (head === undefined || head.length === 0) return;
    this.#hold(new FetchedRange(0, head.length, head, head.length));
    this.#runEnd = head.length;
    this.#fetchBytes = Math.min(head.length, LARGEST_FETCH_BYTES);
  }

  /** Fills the whole of `target` from `offset` on. Rejects with SOURCE_ENDED_EARLY past the end. */
  async read(target: Uint8Array, offset: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { name, sizeBytes } = this.#source;
    if (offset + target.length > sizeBytes)
      throw new AppError('SOURCE_ENDED_EARLY', { name, offset: sizeBytes, sizeBytes });
    for (let done = 0; done < target.length; ) {
      const position = offset + done;
      const range = this.#heldAt(position) ?? this.#fetchAt(position, target.length - done);
      const length = Math.min(range.end - position, target.length - done);
      await this.#readFrom(range, target.subarray(done, done + length), position, signal);
      done += length;
    }
  }

  /** Stops what is being fetched. Safe to call again. */
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
      if (this.#isRun && position <= this.#runEnd) this.#fetchAhead(position);
      await range.copyTo(target, position, signal);
    } finally {
      range.readers -= 1;
    }
  }

  #heldAt(position: number): FetchedRange | undefined {
    return this.#ranges.find((range) => range.covers(position) && !range.hasFailed);
  }

  /** Fetches what nobody has asked for yet. */
  #fetchAt(position: number, wanted: number): FetchedRange {
    const { sizeBytes } = this.#source;
    const isWhole = sizeBytes <= FETCHED_WHOLE_BYTES && this.#ranges.length === 0;
    const goesOn = this.#fetchBytes > 0 && position >= this.#runEnd && position <= this.#runEnd + GAP_BYTES;
    this.#isRun = goesOn && !isWhole;
    if (this.#isRun) {
      this.#growFetches();
    } else {
      this.#dropUnused();
      this.#fetchBytes = isWhole ? sizeBytes : Math.min(Math.max(wanted, SMALLEST_FETCH_BYTES), LARGEST_FETCH_BYTES);
    }
    const hasRoom = this.#makeRoom(this.#fetchBytes);
    if (!hasRoom && !isWhole) this.#fetchBytes = Math.min(this.#fetchBytes, Math.max(wanted, SMALLEST_FETCH_BYTES));
    return this.#fetch(isWhole ? 0 : position);
  }

  #growFetches(): void {
    this.#fetchBytes = Math.min(this.#fetchBytes * FETCH_GROWTH, LARGEST_FETCH_BYTES);
  }

  /** Fetches on behind the end of the run while there is room, so far ahead of the reader and no further. */
  #fetchAhead(position: number): void {
    const { sizeBytes } = this.#source;
    while (this.#runEnd < sizeBytes && this.#runEnd - position < FETCHES_AHEAD * this.#fetchBytes) {
      const held = this.#heldAt(this.#runEnd);
      if (held !== undefined) {
        this.#runEnd = held.end;
        continue;
      }
      if (this.#ranges.filter((range) => range.isComing).length >= FETCHES_AHEAD) return;
      if (!this.#makeRoom(this.#fetchBytes)) return;
      this.#fetch(this.#runEnd);
      this.#growFetches();
    }
  }

  /** Starts a fetch of the run's present size, up to what is held already. */
  #fetch(start: number): FetchedRange {
    assert(!this.#closed, 'a source is read before it is closed');
    const { sizeBytes, fetch } = this.#source;
    const end = this.#ranges.reduce(
      (nearest, range) => (range.offset > start && !range.hasFailed ? Math.min(nearest, range.offset) : nearest),
      Math.min(start + this.#fetchBytes, sizeBytes),
    );
    const length = end - start;
    const range = new FetchedRange(start, length, this.#bufferOf(length));
    this.#hold(range);
    this.#runEnd = end;
    void range.fill((signal) => fetch(start, length, signal));
    return range;
  }

  /** Lets go of what was used longest ago until so much more may be held; false where that is not enough. */
  #makeRoom(bytes: number): boolean {
    for (const range of this.#ranges.filter(({ hasFailed }) => hasFailed)) this.#drop(range);
    while (this.#memory.held + bytes > this.#memory.limit) {
      const [oldest] = this.#ranges
        .filter(({ readers, lastUse }) => readers === 0 && lastUse > 0)
        .sort((first, second) => first.lastUse - second.lastUse);
      if (oldest === undefined) return false;
      this.#drop(oldest);
    }
    return true;
  }

  /** Lets go of what was fetched ahead of a run that was left. */
  #dropUnused(): void {
    for (const range of this.#ranges.filter(({ readers, lastUse }) => readers === 0 && lastUse === 0))
      this.#drop(range);
  }

  #hold(range: FetchedRange): void {
    this.#ranges.push(range);
    this.#memory.held += range.length;
  }

  #drop(range: FetchedRange): void {
    this.#ranges.splice(this.#ranges.indexOf(range), 1);
    this.#memory.held -= range.length;
    range.fail(new Error('what was fetched is not needed any more'));
    const isSpare = range.buffer.length === LARGEST_FETCH_BYTES && this.#spare.length < MAX_SPARE_BUFFERS;
    if (isSpare) this.#spare.push(range.buffer);
    else if (range.readers === 0) freeMemory(range.buffer);
  }

  #bufferOf(length: number): Buffer {
    return (length === LARGEST_FETCH_BYTES ? this.#spare.pop() : undefined) ?? Buffer.allocUnsafeSlow(length);
  }
}
