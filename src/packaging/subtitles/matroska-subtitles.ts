import { type ByteSource, ReadWindow, readRange } from '#bytes/byte-source.ts';
import { childrenOf, elementAt, MAX_HEADER_BYTES, unsignedOf, variableInteger } from '#formats/ebml.ts';
import { CLUSTER, type MatroskaTrack, SEGMENT, SUBTITLE_TYPE, TRACKS, tracksIn } from '../containers/matroska.ts';
import { type Cue, decodeText, MAX_SUBTITLES_BYTES, makeCue, parseSubtitles, type Subtitles } from './web-vtt.ts';

/** IDs of Matroska elements (RFC 9559 §5.1). */
const INFO = 0x1549a966;
const TIMESTAMP_SCALE = 0x2ad7b1;
const CLUSTER_TIMESTAMP = 0xe7;
const BLOCK_GROUP = 0xa0;
const BLOCK = 0xa1;
const BLOCK_DURATION = 0x9b;
const BLOCK_ADDITIONS = 0x75a1;
const BLOCK_MORE = 0xa6;
const BLOCK_ADDITIONAL = 0xa5;

/** Elements whose children are visited; all others are skipped, or read. */
const ENTERED = new Set([SEGMENT, CLUSTER, BLOCK_GROUP]);
/** Default tick of block times, in nanoseconds. */
const DEFAULT_SCALE_NS = 1_000_000;
/** Bytes of one read of headers, which lie far apart, with pictures between them. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** Longest header of a block: track number, time and flags (RFC 9559 §10.1). */
const BLOCK_HEADER_BYTES = 8 + 2 + 1;

/** A block of subtitles as it is in the file, with times in ticks. */
interface TextBlock {
  readonly start: number;
  readonly payload: Buffer;
  duration: number;
  /** Additional data of the block: for WebVTT the settings of the cue, on the first line. */
  addition: string;
}

/**
 * Reads one subtitle track of a Matroska file: SubRip, or WebVTT in either of its two forms. `indexOfKind` counts the
 * subtitle tracks, from zero. Walks the whole file, from header to header.
 */
export async function readMatroskaSubtitles(
  source: ByteSource,
  indexOfKind: number,
  signal: AbortSignal,
): Promise<Subtitles> {
  const walk = new SubtitleWalk(source, indexOfKind, signal);
  await walk.run();
  return walk.subtitles();
}

class SubtitleWalk {
  readonly #source: ByteSource;
  readonly #indexOfKind: number;
  readonly #signal: AbortSignal;
  readonly #blocks: TextBlock[] = [];
  #track: MatroskaTrack | null = null;
  #scaleNs = DEFAULT_SCALE_NS;
  #clusterTime = 0;
  /** Block that the following elements of its group belong to. */
  #open: TextBlock | null = null;
  #textBytes = 0;

  constructor(source: ByteSource, indexOfKind: number, signal: AbortSignal) {
    this.#source = source;
    this.#indexOfKind = indexOfKind;
    this.#signal = signal;
  }

  async run(): Promise<void> {
    const { sizeBytes } = this.#source;
    const window = new ReadWindow(this.#source, this.#signal, WINDOW_SIZE_BYTES);
    for (let offset = 0; offset < sizeBytes; ) {
      const length = Math.min(MAX_HEADER_BYTES + BLOCK_HEADER_BYTES, sizeBytes - offset);
      const head = window.buffered(offset, length) ?? (await window.read(offset, length));
      const element = elementAt(head, 0, sizeBytes - offset);
      if (element === null) return;
      const { id, start, end } = element;
      if (id === BLOCK_GROUP) this.#open = null;
      if (id === BLOCK) await this.#openBlock(head.subarray(start), offset + start, end - start);
      else if (this.#isRead(id)) this.#take(id, await this.#content(offset + start, end - start));
      offset += ENTERED.has(id) ? start : end;
    }
  }

  subtitles(): Subtitles {
    const { codecId = '', codecPrivate = Buffer.alloc(0) } = this.#track ?? {};
    const cues = this.#blocks.flatMap((block) => this.#cueOf(block, codecId) ?? []);
    const { head } = parseSubtitles(codecPrivate);
    return { head, cues: cues.sort((first, second) => first.startSeconds - second.startSeconds), zeroSeconds: null };
  }

  #isRead(id: number): boolean {
    if (id === BLOCK_DURATION || id === BLOCK_ADDITIONS) return this.#open !== null;
    return id === INFO || id === TRACKS || id === CLUSTER_TIMESTAMP;
  }

  #take(id: number, content: Buffer): void {
    if (id === CLUSTER_TIMESTAMP) this.#clusterTime = unsignedOf(content);
    else if (id === TRACKS) this.#track = subtitleTrackIn(content, this.#indexOfKind);
    else if (id === INFO) this.#scaleNs = scaleIn(content) ?? this.#scaleNs;
    else if (this.#open !== null && id === BLOCK_DURATION) this.#open.duration = unsignedOf(content);
    else if (this.#open !== null) this.#open.addition = additionIn(content);
  }

  async #openBlock(head: Buffer, offset: number, length: number): Promise<void> {
    const number = variableInteger(head, 0, false);
    if (number === null || number.value !== this.#track?.number || head.length < number.length + 3) return;
    const headerBytes = number.length + 3;
    const payload = await this.#content(offset + headerBytes, Math.max(length - headerBytes, 0));
    const start = this.#clusterTime + head.readInt16BE(number.length);
    this.#open = { start, payload, duration: 0, addition: '' };
    this.#blocks.push(this.#open);
  }

  /** Reads the content of an element. All contents together are limited like a subtitle file. */
  async #content(offset: number, length: number): Promise<Buffer> {
    this.#textBytes += length;
    if (this.#textBytes > MAX_SUBTITLES_BYTES) return Buffer.alloc(0);
    return await readRange(this.#source, offset, length, this.#signal);
  }

  #cueOf({ start, payload, duration, addition }: TextBlock, codecId: string): Cue | null {
    const secondsOf = (ticks: number): number => (ticks * this.#scaleNs) / 1e9;
    const times = { startSeconds: Math.max(secondsOf(start), 0), endSeconds: secondsOf(start + duration) };
    const lines = decodeText(payload).split(/\r?\n/);
    // In the form of WebM, the cue's name and settings go before its text.
    if (codecId.startsWith('D_WEBVTT/')) return makeCue({ ...times, settings: lines[1] ?? '', lines: lines.slice(2) });
    const [settings = ''] = addition.split('\n');
    return makeCue({ ...times, settings, lines });
  }
}

function subtitleTrackIn(content: Buffer, indexOfKind: number): MatroskaTrack | null {
  const subtitles = [...tracksIn(content)].filter(({ type }) => type === SUBTITLE_TYPE);
  return subtitles[indexOfKind] ?? null;
}

function scaleIn(info: Buffer): number | null {
  for (const { id, start, end } of childrenOf(info, 0, info.length)) {
    if (id === TIMESTAMP_SCALE) return unsignedOf(info.subarray(start, end));
  }
  return null;
}

function additionIn(additions: Buffer): string {
  for (const more of childrenOf(additions, 0, additions.length)) {
    if (more.id !== BLOCK_MORE) continue;
    for (const { id, start, end } of childrenOf(additions, more.start, more.end)) {
      if (id === BLOCK_ADDITIONAL) return decodeText(additions.subarray(start, end));
    }
  }
  return '';
}
