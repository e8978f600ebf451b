import assert from 'node:assert';
import type * as Mediabunny from 'mediabunny';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { childrenOf, elementAt, unsignedOf, variableInteger } from '#formats/ebml.ts';
import { CLUSTER } from '../containers/matroska.ts';
import { SampleCounts } from '../containers/mp4-counts.ts';
import { BrokenMedia } from '../probed-file.ts';

/** Cache of a demuxer while it probes a file, in bytes. */
const PROBE_CACHE_BYTES = 4 * 1024 * 1024;
/** Request limit: a minimum, and one request for each 16 bytes of the file. */
const MIN_REQUESTS = 100_000;
const BYTES_PER_REQUEST = 16;
/** Limit of consecutive requests for the same bytes. */
const MAX_SAME_REQUESTS = 10_000;
/** Limit of requested bytes: a minimum, and 128 times the file, because each of its tracks may need a pass. */
const MIN_REQUESTED_BYTES = 64 * 1024 * 1024;
const MAX_PASSES = 128;
/** Limit of one request, which is in memory at once: the largest are clusters of Matroska. */
const MAX_REQUEST_BYTES = 512 * 1024 * 1024;
/** Size and type of a box; requests of no more than this look for boxes, and do not read them. */
const MAX_BOX_HEADER_BYTES = 16;

/**
 * Method of mediabunny's sources that receives every request of a demuxer. It is internal: the documented callback of
 * CustomSource and the documented `read` event see cache misses only, merged with each other and extended at the start.
 * Loops of a demuxer hit the cache, and a box can be checked only where its request starts.
 */
interface ReadByRange {
  _read(start: number, end: number, min: number, max: number): ReadResult | Promise<ReadResult>;
}

type ReadResult = { readonly bytes: Uint8Array; readonly offset: number } | null;

/**
 * Returns the source as demuxers read it, from `offset` on. It throws BrokenMedia where a demuxer loops, because it then
 * requests the same bytes again and again, mostly without a point at which it could be interrupted. It also checks tables,
 * fragments and clusters before they are parsed, wherever in the file the demuxer finds them.
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

/** Checks each `moof` and `tfra` box once, when a demuxer requests it as a whole. */
class MovieCounts {
  readonly #counts: SampleCounts;
  readonly #checked = new Set<number>();

  constructor(sizeBytes: number) {
    this.#counts = new SampleCounts(sizeBytes);
  }

  check(bytes: Buffer, offset: number): void {
    if (bytes.length <= MAX_BOX_HEADER_BYTES || this.#checked.has(offset)) return;
    const type = bytes.toString('latin1', 4, 8);
    if (type !== 'moof' && type !== 'tfra') return;
    this.#checked.add(offset);
    this.#counts.check(bytes, offset);
  }
}

/** Counts the requests of a demuxer. Throws BrokenMedia past a limit. */
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

/** IDs of Matroska elements (RFC 9559 §5.1). */
const SEEK_HEAD = 0x114d9b74;
const CUES = 0x1c53bb6b;
const CUE_POINT = 0xbb;
const CUE_TIME = 0xb3;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;

/** Limit of all seek heads of a file, in bytes; one mostly has a hundred. */
const MAX_SEEK_HEAD_BYTES = 64 * 1024;
/** Limit of cue points that repeat the time of another one. */
const MAX_SAME_TIMES = 10_000;
/** Limit of laced frames in one cluster (RFC 9559 §10.3). */
const MAX_LACED_FRAMES = 20_000;
/** Offset of a block's flags after its track number: its time has two bytes. */
const FLAGS_OFFSET = 2;
const LACING = 0x06;

/**
 * Refuses lists that a demuxer processes in quadratic time, by searching, removing and inserting entries one by one. The
 * header that was requested before tells which element a request reads.
 */
class MatroskaCounts {
  #header = { id: 0, start: -1 };
  #seekBytes = 0;

  /** Checks the bytes at `offset` that a demuxer has requested. Throws BrokenMedia. */
  check(bytes: Buffer, offset: number): void {
    if (offset === this.#header.start && bytes.length > 0) this.#checkContent(bytes);
    const element = elementAt(bytes, 0, Number.POSITIVE_INFINITY);
    if (element !== null) this.#header = { id: element.id, start: offset + element.start };
  }

  #checkContent(bytes: Buffer): void {
    const { id, start } = this.#header;
    if (id === SEEK_HEAD) this.#seekBytes += bytes.length;
    const hasTooMany =
      this.#seekBytes > MAX_SEEK_HEAD_BYTES ||
      (id === CUES && sameTimes(bytes) > MAX_SAME_TIMES) ||
      (id === CLUSTER && lacedFrames(bytes) > MAX_LACED_FRAMES);
    if (hasTooMany) throw new BrokenMedia(`is damaged: the element at byte ${start} has more entries than it can mean`);
  }
}

function sameTimes(cues: Buffer): number {
  const times = new Set<number>();
  let count = 0;
  for (const point of childrenOf(cues, 0, cues.length)) {
    if (point.id !== CUE_POINT) continue;
    count += 1;
    for (const { id, start, end } of childrenOf(cues, point.start, point.end)) {
      if (id === CUE_TIME) times.add(unsignedOf(cues.subarray(start, Math.min(end, start + 8))));
    }
  }
  return count - times.size;
}

function lacedFrames(cluster: Buffer): number {
  let frames = 0;
  for (const { id, start, end } of childrenOf(cluster, 0, cluster.length)) {
    if (id === SIMPLE_BLOCK) frames += framesOf(cluster, start);
    if (id !== BLOCK_GROUP) continue;
    for (const block of childrenOf(cluster, start, end))
      if (block.id === BLOCK) frames += framesOf(cluster, block.start);
  }
  return frames;
}

/** Returns the number of frames in a laced block; zero for others. */
function framesOf(bytes: Buffer, start: number): number {
  const at = start + (variableInteger(bytes, start, false)?.length ?? 1) + FLAGS_OFFSET;
  return ((bytes[at] ?? 0) & LACING) === 0 ? 0 : (bytes[at + 1] ?? 0) + 1;
}
