import { isForeignContainer } from '../foreign-containers.ts';
import type { AudioStream } from './audio-stream.ts';
import { startsFreeFormat } from './free-format.ts';

/** Size of an MPEG audio frame's header in bytes. */
const HEADER_SIZE_BYTES = 4;
/** How far into a stream the first frame may stand: encoders and cutters leave silence or a torn frame in front. */
export const MAX_GARBAGE_BYTES = 1024 * 1024;
/**
 * Frames that must follow each other where the first stands right at the start, and where it has to be searched. Far
 * into a stream there must be more than a packet of a container holds.
 */
const FRAMES_AT_START = 2;
const FRAMES_AFTER_GARBAGE = 4;
const FRAMES_AFTER_MUCH_GARBAGE = 32;
const MUCH_GARBAGE_BYTES = 16 * 1024;

/** Bit rates in kbit/s by index, for MPEG-1 layers I, II and III, then MPEG-2 layer I and its layers II and III. */
const BIT_RATES = {
  v1l1: [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  v1l2: [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  v1l3: [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  v2l1: [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  v2l23: [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
} as const;

/** Sample rates in Hz of MPEG-1; MPEG-2 halves and MPEG-2.5 quarters them. */
const SAMPLE_RATES = [44_100, 48_000, 32_000] as const;

/** The boxes that ISO BMFF may start with. */
const BOX_TYPES = ['ftyp', 'styp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];

/** A frame of an elementary stream of sound. */
export interface AudioFrame {
  /** With header, in bytes. */
  readonly sizeBytes: number;
  readonly seconds: number;
}

/** The header of one frame (ISO/IEC 11172-3 §2.4.2.3, ISO/IEC 13818-3). */
interface MpegFrame extends AudioFrame {
  readonly layer: 1 | 2 | 3;
  /** The bits that all frames of a stream share: version, layer and sample rate. */
  readonly kind: number;
}

/** MPEG audio, usually layer III (MP3). ADTS AAC has the same sync word but layer 0, and is not taken for it. */
export const mpegAudio: AudioStream = {
  name: 'MPEG audio',
  mediaType: 'audio/mpeg',
  extensions: ['mp3', 'mp2', 'mpga'],
  allowsSeveralTags: true,
  allowsFooter: true,
  matches: (head) => startsFreeFormat(head) || findFirstFrame(head) !== null,
  check: () => undefined,
};

/** Where the first of several consistent frames stands, or null. */
export function findFirstFrame(bytes: Uint8Array): number | null {
  if (countFrames(bytes, 0, FRAMES_AT_START)) return 0;
  const last = Math.min(MAX_GARBAGE_BYTES, bytes.length - HEADER_SIZE_BYTES);
  if (startsLikeContainer(bytes)) return null;
  for (let offset = 1; offset <= last; offset++) {
    const wanted = offset <= MUCH_GARBAGE_BYTES ? FRAMES_AFTER_GARBAGE : FRAMES_AFTER_MUCH_GARBAGE;
    if (bytes[offset] === 0xff && countFrames(bytes, offset, wanted)) return offset;
  }
  return null;
}

/**
 * Whether `wanted` frames of one kind follow each other, or fewer that reach exactly to the end of the bytes: any number
 * from the start on, but behind garbage one may do so by chance.
 */
function countFrames(bytes: Uint8Array, start: number, wanted: number): boolean {
  let offset = start;
  let kind: number | null = null;
  for (let count = 0; count < wanted; count++) {
    if (count > 0 && offset === bytes.length) return wanted === FRAMES_AT_START || count >= FRAMES_AFTER_GARBAGE;
    const frame = parseMpegFrame(bytes, offset);
    if (frame === null || (kind !== null && frame.kind !== kind)) return false;
    kind = frame.kind;
    offset += frame.sizeBytes;
  }
  return true;
}

/** Parses the header of a frame, or null where it is none, or states no bit rate and so no size (free format). */
export function parseMpegFrame(bytes: Uint8Array, offset: number): MpegFrame | null {
  const [b0 = 0, b1 = 0, b2 = 0] = bytes.subarray(offset, offset + HEADER_SIZE_BYTES - 1);
  const version = (b1 >> 3) & 3; // 0: MPEG-2.5, 1: reserved, 2: MPEG-2, 3: MPEG-1
  const layerBits = (b1 >> 1) & 3;
  const bitRateIndex = b2 >> 4;
  const sampleRateIndex = (b2 >> 2) & 3;
  if (b0 !== 0xff || b1 < 0xe0 || version === 1 || layerBits === 0) return null;
  const layer = (4 - layerBits) as 1 | 2 | 3;
  const kbits = bitRatesOf(version === 3, layer)[bitRateIndex];
  const rate = SAMPLE_RATES[sampleRateIndex];
  if (kbits === undefined || kbits === 0 || rate === undefined) return null;
  const sampleRate = version === 3 ? rate : version === 2 ? rate / 2 : rate / 4;
  const padding = (b2 >> 1) & 1;
  const kind = (version << 4) | (layer << 2) | sampleRateIndex;
  const sizeBytes = frameSizeBytes(layer, version === 3, kbits * 1000, sampleRate, padding);
  const samples = layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1152;
  return { layer, kind, sizeBytes, seconds: samples / sampleRate };
}

function bitRatesOf(isMpeg1: boolean, layer: 1 | 2 | 3): readonly number[] {
  if (!isMpeg1) return layer === 1 ? BIT_RATES.v2l1 : BIT_RATES.v2l23;
  return layer === 1 ? BIT_RATES.v1l1 : layer === 2 ? BIT_RATES.v1l2 : BIT_RATES.v1l3;
}

/** Layer I counts in slots of four bytes, the others in bytes; layer III of MPEG-2 has half the samples per frame. */
function frameSizeBytes(
  layer: 1 | 2 | 3,
  isMpeg1: boolean,
  bitRate: number,
  sampleRate: number,
  padding: number,
): number {
  if (layer === 1) return (Math.floor((12 * bitRate) / sampleRate) + padding) * 4;
  const bytesPerFrame = layer === 3 && !isMpeg1 ? 72 : 144;
  return Math.floor((bytesPerFrame * bitRate) / sampleRate) + padding;
}

/** Other containers may hold runs of MPEG frames near their start; they are not MP3 files. */
function startsLikeContainer(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, 8)).toString('latin1');
  return start.startsWith('RIFF') || BOX_TYPES.includes(start.slice(4)) || isForeignContainer(bytes);
}
