import type * as Mediabunny from 'mediabunny';
import { type ByteSource, ReadWindow, readRange } from '#bytes/byte-source.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { type AudioFrame, findFirstFrame, MAX_GARBAGE_BYTES, parseMpegFrame } from '#formats/mpeg-audio.ts';
import type { ContainerKind, ProbedStream } from '../probed-file.ts';

/** Tolerated difference between the stated and the actual duration of a movie, in seconds and as a fraction. */
const LENGTH_TOLERANCE_SECONDS = 0.5;
const LENGTH_TOLERANCE = 0.01;

/** Walks the frames of an elementary stream; null for other containers, and for MP3 that states its number of frames. */
export async function walkElementary(
  container: ContainerKind,
  source: ByteSource,
  signal: AbortSignal,
): Promise<FrameWalk | null> {
  if (container === 'adts') return await walkFrames(source, 'adts', 0, signal);
  if (container !== 'mp3') return null;
  const start = await readMp3Start(source, signal);
  if (start?.hasFrameCount === true) return null;
  return await walkFrames(source, 'mp3', start?.offset ?? 0, signal);
}

/** Returns the end of a track, in seconds; null where only packaging would tell. */
export async function endOf(
  track: Mediabunny.InputTrack,
  container: ContainerKind,
  walked: FrameWalk | null,
): Promise<number | null> {
  if (walked !== null) return walked.seconds;
  return container === 'mp3' || container === 'flac'
    ? await track.getDurationFromMetadata()
    : await track.computeDuration();
}

/** Warns where the end of a file may be missing, although it can be packaged. */
export async function warningsOfEnd(
  file: string,
  container: ContainerKind,
  streams: readonly ProbedStream[],
  { statedSeconds, walked }: { statedSeconds: number | null; walked: FrameWalk | null },
  source: ByteSource,
  signal: AbortSignal,
): Promise<Warning[]> {
  if (walked !== null && walked.missingBytes > 0) {
    return [warning('FRAME_CUT_SHORT', { file, missingBytes: walked.missingBytes })];
  }
  if (container === 'mpeg-ts' && (await endsWithinPacket(source, signal))) {
    return [warning('PACKET_CUT_SHORT', { file })];
  }
  const ends = streams.map(({ startSeconds, durationSeconds }) => Math.max(startSeconds, 0) + (durationSeconds ?? 0));
  const seconds = Math.max(0, ...ends);
  // The duration of subtitles alone is not probed.
  if (statedSeconds === null || streams.length === 0) return [];
  if (statedSeconds - seconds <= Math.max(LENGTH_TOLERANCE_SECONDS, statedSeconds * LENGTH_TOLERANCE)) return [];
  return [warning('FRAGMENTS_END_EARLY', { file, statedSeconds, seconds })];
}

/** Returns whether the file ends within a packet of 188 bytes, or of 192 with the time stamp of a recorder. */
async function endsWithinPacket(source: ByteSource, signal: AbortSignal): Promise<boolean> {
  const [first] = await readRange(source, 0, Math.min(source.sizeBytes, 1), signal);
  return source.sizeBytes % (first === 0x47 ? 188 : 192) !== 0;
}

/** Header of an ID3v2 tag (ID3v2.4 structure, §3.1). */
const ID3_HEADER_BYTES = 10;
/** Largest first frame, which holds the number of frames. */
const FIRST_FRAME_BYTES = 1500;
/** Bytes that are searched for frames after leading garbage. */
const FRAME_SEARCH_BYTES = 64 * 1024;

/** Start of an MP3 file. */
interface Mp3Start {
  /** Offset of its first frame, after tags, silence or a torn frame. */
  readonly offset: number;
  /** True where a frame at its start states the number of frames (Xing, LAME). */
  readonly hasFrameCount: boolean;
}

/** Finds the first frame of an MP3 file; null where there is none. */
export async function readMp3Start(source: ByteSource, signal: AbortSignal): Promise<Mp3Start | null> {
  const tagBytes = tagBytesIn(await readRange(source, 0, Math.min(source.sizeBytes, ID3_HEADER_BYTES), signal));
  const length = Math.min(source.sizeBytes - tagBytes, MAX_GARBAGE_BYTES + FRAME_SEARCH_BYTES);
  if (length <= 0) return null;
  const bytes = await readRange(source, tagBytes, length, signal);
  const first = findFirstFrame(bytes);
  if (first === null) return null;
  const frame = bytes.subarray(first, first + FIRST_FRAME_BYTES);
  const hasFrameCount = frame.includes('Xing', 0, 'latin1') || frame.includes('Info', 0, 'latin1');
  return { offset: tagBytes + first, hasFrameCount };
}

/** Returns the size of the ID3v2 tag that begins with `head`, in bytes; 0 where there is none. */
function tagBytesIn(head: Buffer): number {
  if (head.length < ID3_HEADER_BYTES || head.toString('latin1', 0, 3) !== 'ID3') return 0;
  return [6, 7, 8, 9].reduce((size, at) => size * 128 + ((head[at] as number) & 0x7f), 0) + ID3_HEADER_BYTES;
}

/** Result of walking the frames of an elementary audio stream. */
export interface FrameWalk {
  /** Null where it is unknown: the stream is too large, or other data stands between frames. */
  readonly seconds: number | null;
  /** Bytes that are missing of the last frame. */
  readonly missingBytes: number;
}

/** Limit of a stream that is walked, in bytes: a larger one would take as long as packaging it. */
const MAX_WALKED_BYTES = 1024 ** 3;
/** Bytes of one read of headers; frames have some hundred. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** Header of an ADTS frame, without its checksum (ISO/IEC 14496-3 §1.A.2.2). */
const ADTS_HEADER_BYTES = 7;

const PARSERS = { mp3: parseMpegFrame, adts: parseAdtsFrame } as const;

const UNKNOWN: FrameWalk = { seconds: null, missingBytes: 0 };

/**
 * Walks the frames of MP3 or ADTS from `start` on, and over ID3v2 tags, with which segments of packed audio begin. Other data
 * after them is mostly a tag, too.
 */
async function walkFrames(
  source: ByteSource,
  kind: keyof typeof PARSERS,
  start: number,
  signal: AbortSignal,
): Promise<FrameWalk> {
  if (source.sizeBytes > MAX_WALKED_BYTES) return UNKNOWN;
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  let seconds = 0;
  let offset = start;
  while (offset + ADTS_HEADER_BYTES <= source.sizeBytes) {
    const length = Math.min(ID3_HEADER_BYTES, source.sizeBytes - offset);
    const header = window.buffered(offset, length) ?? (await window.read(offset, length));
    const frame = PARSERS[kind](header, 0);
    if (frame === null) {
      const tagBytes = tagBytesIn(header);
      if (tagBytes === 0) return isTag(header) ? { seconds, missingBytes: 0 } : UNKNOWN;
      offset += tagBytes;
      continue;
    }
    offset += frame.sizeBytes;
    if (offset > source.sizeBytes) return { seconds, missingBytes: offset - source.sizeBytes };
    seconds += frame.seconds;
  }
  return { seconds, missingBytes: 0 };
}

function isTag(bytes: Buffer): boolean {
  return /^(?:TAG|APETAGE|LYRICSB|3DI)/.test(bytes.toString('latin1'));
}

const ADTS_SAMPLE_RATES = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
];
const SAMPLES_PER_BLOCK = 1024;

function parseAdtsFrame(bytes: Buffer): AudioFrame | null {
  if ((bytes.readUInt16BE(0) & 0xfff6) !== 0xfff0) return null;
  const sampleRate = ADTS_SAMPLE_RATES[((bytes[2] as number) >> 2) & 15];
  const sizeBytes = (bytes.readUInt32BE(3) >>> 13) & 0x1fff;
  if (sampleRate === undefined || sizeBytes < ADTS_HEADER_BYTES) return null;
  const blockCount = ((bytes[6] as number) & 3) + 1;
  return { sizeBytes, seconds: (blockCount * SAMPLES_PER_BLOCK) / sampleRate };
}
