import { BrokenMedia } from './broken-media.ts';
import { childrenOf, elementAt, unsignedOf, variableInteger } from './matroska-elements.ts';
import { CLUSTER } from './matroska-tracks.ts';

/** Elements of Matroska (RFC 9559 §5.1), by their IDs. */
const SEEK_HEAD = 0x114d9b74;
const CUES = 0x1c53bb6b;
const CUE_POINT = 0xbb;
const CUE_TIME = 0xb3;
const SIMPLE_BLOCK = 0xa3;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;

/** All lists of a file that say where its elements stand, in bytes; mostly one of a hundred. */
const MAX_SEEK_HEAD_BYTES = 64 * 1024;
/** Cue points that have the time of another one. */
const MAX_SAME_TIMES = 10_000;
/** Frames of one cluster that lie in blocks with others (RFC 9559 §10.3). */
const MAX_LACED_FRAMES = 20_000;
/** Where a block's flags stand behind the number of its track: its time has two bytes. */
const FLAGS_OFFSET = 2;
const LACING = 0x06;

/**
 * Refuses lists that a demuxer takes a time for that grows with their square: it looks for entries, takes them out and
 * puts them in one by one. What it asks for is told by the header that it asked for before.
 */
export class MatroskaCounts {
  #header = { id: 0, start: -1 };
  #seekBytes = 0;

  /** Checks what a demuxer has asked for: `bytes` stand at `offset`. Throws BrokenMedia. */
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

/** Frames of a block that holds several; zero of others. */
function framesOf(bytes: Buffer, start: number): number {
  const at = start + (variableInteger(bytes, start, false)?.length ?? 1) + FLAGS_OFFSET;
  return ((bytes[at] ?? 0) & LACING) === 0 ? 0 : (bytes[at + 1] ?? 0) + 1;
}
