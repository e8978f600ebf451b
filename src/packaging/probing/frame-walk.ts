import type { ByteSource } from '#bytes/byte-source.ts';
import { type AudioFrame, parseMpegFrame } from '#formats/id3/mpeg-audio.ts';
import { ReadWindow } from '#formats/read-window.ts';

/** What the frames of an elementary stream of sound say, one after the other. */
export interface FrameWalk {
  /** Null where they do not tell: the stream is too large, or something else stands between them. */
  readonly seconds: number | null;
  /** How many bytes are missing of the last frame. */
  readonly missingBytes: number;
}

/** Larger streams are not walked through, in bytes: they would take as long as packaging them. */
const LARGEST_WALKED_BYTES = 1024 ** 3;
/** One read of headers fetches so many bytes; frames have some hundred. */
const WINDOW_SIZE_BYTES = 256 * 1024;
/** A header of ADTS, without its checksum (ISO/IEC 14496-3 §1.A.2.2). */
const ADTS_HEADER_BYTES = 7;

const PARSERS = { mp3: parseMpegFrame, adts: parseAdtsFrame } as const;

const UNKNOWN: FrameWalk = { seconds: null, missingBytes: 0 };

/** Walks through the frames of MP3 or ADTS from `start` on. What stands behind them is mostly a tag. */
export async function walkFrames(
  source: ByteSource,
  kind: keyof typeof PARSERS,
  start: number,
  signal: AbortSignal,
): Promise<FrameWalk> {
  if (source.sizeBytes > LARGEST_WALKED_BYTES) return UNKNOWN;
  const window = new ReadWindow(source, signal, WINDOW_SIZE_BYTES);
  let seconds = 0;
  let offset = start;
  while (offset + ADTS_HEADER_BYTES <= source.sizeBytes) {
    const header = window.held(offset, ADTS_HEADER_BYTES) ?? (await window.read(offset, ADTS_HEADER_BYTES));
    const frame = PARSERS[kind](header, 0);
    if (frame === null) return isTag(header) ? { seconds, missingBytes: 0 } : UNKNOWN;
    offset += frame.sizeBytes;
    if (offset > source.sizeBytes) return { seconds, missingBytes: offset - source.sizeBytes };
    seconds += frame.seconds;
  }
  return { seconds, missingBytes: 0 };
}

function isTag(bytes: Buffer): boolean {
  return /^(?:TAG|APETAGE|LYRICSB|ID3|3DI)/.test(bytes.toString('latin1'));
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
