import assert from 'node:assert';
import type * as Mediabunny from 'mediabunny';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { BrokenMedia } from './broken-media.ts';
import { MatroskaCounts } from './matroska-counts.ts';
import { SampleCounts } from './sample-counts.ts';

/** What a demuxer may keep of a file in memory while it is probed, in bytes. */
const PROBE_CACHE_BYTES = 4 * 1024 * 1024;
/** Requests of a demuxer for bytes: some, and one for each so many bytes of the file. */
const MIN_REQUESTS = 100_000;
const BYTES_PER_REQUEST = 16;
/** Requests for the very same bytes, one after the other. */
const MAX_SAME_REQUESTS = 10_000;
/** Bytes that a demuxer may ask for: some, and the file so many times. It may go through the file for each of its tracks. */
const MIN_REQUESTED_BYTES = 64 * 1024 * 1024;
const MAX_PASSES = 128;
/** Bytes of one request, which are in memory at once: the largest are clusters of Matroska. */
const MAX_REQUEST_BYTES = 512 * 1024 * 1024;
/** Size and type of a box; requests for no more look for what stands where. */
const LONGEST_BOX_HEADER_BYTES = 16;

/** The method by which all of a demuxer's requests come, also those that it has the bytes for already. */
interface ReadByRange {
  _read(start: number, end: number, min: number, max: number): ReadResult | Promise<ReadResult>;
}

type ReadResult = { readonly bytes: Uint8Array; readonly offset: number } | null;

/**
 * A source as the demuxers read it, from `offset` on, which throws where a demuxer goes round in circles: they ask for
 * the same bytes again and again then, most of the time without anything in between that could be interrupted. Tables,
 * fragments and clusters are checked before they are parsed, wherever in the file they are found.
 */
export function guardedSource(
  library: typeof Mediabunny,
  source: ByteSource,
  { offset, isMatroska }: { readonly offset: number; readonly isMatroska: boolean },
  signal: AbortSignal,
): Mediabunny.CustomSource {
  const unguarded = new library.CustomSource({
    getSize: () => source.sizeBytes - offset,
    read: (start, end) => readRange(source, offset + start, end - start, signal),
    maxCacheSize: PROBE_CACHE_BYTES,
    prefetchProfile: 'fileSystem',
    // A read ahead that fails is made again when its bytes are needed.
    handleUnhandledError: () => undefined,
  });
  const reads = unguarded as unknown as ReadByRange;
  assert(typeof reads._read === 'function', 'requests of demuxers come by this method of their sources');
  const read = reads._read.bind(reads);
  const guard = new RequestGuard(source.sizeBytes);
  const counts = isMatroska ? new MatroskaCounts() : new MovieCounts(source.sizeBytes);
  const check = (start: number, end: number, result: ReadResult): ReadResult => {
    if (result === null) return null;
    const bytes = Buffer.from(result.bytes.buffer, result.bytes.byteOffset + start - result.offset, end - start);
    counts.check(bytes, offset + start);
    return result;
  };
  reads._read = (start, end, min, max) => {
    guard.request(start, end);
    const result = read(start, end, min, max);
    return result instanceof Promise ? result.then((bytes) => check(start, end, bytes)) : check(start, end, result);
  };
  return unguarded;
}

/** Checks the boxes of a movie that are asked for as a whole, once each. */
class MovieCounts {
  readonly #counts: SampleCounts;
  readonly #checked = new Set<number>();

  constructor(sizeBytes: number) {
    this.#counts = new SampleCounts(sizeBytes);
  }

  check(bytes: Buffer, offset: number): void {
    if (bytes.length <= LONGEST_BOX_HEADER_BYTES || this.#checked.has(offset)) return;
    const type = bytes.toString('latin1', 4, 8);
    if (type !== 'moof' && type !== 'tfra') return;
    this.#checked.add(offset);
    this.#counts.check(bytes, offset);
  }
}

/** Counts what a demuxer asks for. Throws BrokenMedia past the bounds. */
class RequestGuard {
  readonly #maxRequests: number;
  readonly #maxBytes: number;
  #requests = 0;
  #bytes = 0;
  #last = { start: -1, end: -1 };
  #same = 0;

  constructor(sizeBytes: number) {
    this.#maxRequests = MIN_REQUESTS + sizeBytes / BYTES_PER_REQUEST;
    this.#maxBytes = MIN_REQUESTED_BYTES + sizeBytes * MAX_PASSES;
  }

  request(start: number, end: number): void {
    this.#same = start === this.#last.start && end === this.#last.end ? this.#same + 1 : 0;
    this.#last = { start, end };
    this.#requests += 1;
    this.#bytes += end - start;
    if (end - start > MAX_REQUEST_BYTES) {
      throw new BrokenMedia(`has an element of ${end - start} bytes that would have to be in memory at once`);
    }
    if (this.#same > MAX_SAME_REQUESTS || this.#requests > this.#maxRequests || this.#bytes > this.#maxBytes) {
      throw new BrokenMedia(
        `is damaged around byte ${start}: what stands there leads nowhere, or back to what was read before`,
      );
    }
  }
}
