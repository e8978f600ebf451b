import { isUnsupportedContainer } from './unsupported-containers.ts';

/** Size of an MPEG audio frame's header in bytes. */
const HEADER_SIZE_BYTES = 4;
/** Largest number of bytes before the first frame: encoders and editors leave silence or a partial frame there. */
export const MAX_GARBAGE_BYTES = 1024 * 1024;

/**
 * Numbers of consecutive frames required: where the first is at the start, where it has to be searched, and where it is
 * far into the stream. The last one is more than a packet of a container holds.
 */
const FRAMES_AT_START = 2;
const FRAMES_AFTER_GARBAGE = 4;
const FRAMES_AFTER_MUCH_GARBAGE = 32;
const MUCH_GARBAGE_BYTES = 16 * 1024;
/** Largest frame in free format: 640 kbit/s at the lowest sample rate, in bytes. */
const MAX_FREE_FRAME_SIZE_BYTES = 5_760;
/** Smallest frame in free format: header and side information, in bytes. */
const MIN_FREE_FRAME_SIZE_BYTES = 24;

/**
 * Number of consecutive frames required in free format; the minimum applies where they reach exactly to the end
 * of the bytes.
 */
const FREE_FORMAT_FRAMES = 6;
const MIN_FREE_FORMAT_FRAMES = 3;

interface FreeHeader {
  /** Bits that all frames of a stream share: version, layer and sample rate. */
  readonly kind: number;
  readonly paddingBytes: number;
}

/**
 * Tells whether bytes start with MPEG audio in free format, whose frames state no bit rate (ISO/IEC 11172-3 §2.4.2.3).
 * All of them have one size, apart from a padding slot: every possible distance to the second frame is tried.
 */
export function startsFreeFormat(bytes: Uint8Array): boolean {
  const first = parseFreeHeader(bytes, 0);
  if (first === null) return false;
  for (let sizeBytes = MIN_FREE_FRAME_SIZE_BYTES; sizeBytes <= MAX_FREE_FRAME_SIZE_BYTES; sizeBytes++) {
    if (framesFollow(bytes, first, sizeBytes)) return true;
  }
  return false;
}

/** Tells whether consecutive frames of `sizeBytes`, plus their padding, start the bytes. */
function framesFollow(bytes: Uint8Array, first: FreeHeader, sizeBytes: number): boolean {
  let offset = sizeBytes + first.paddingBytes;
  for (let count = 1; count < FREE_FORMAT_FRAMES; count++) {
    if (offset === bytes.length) return count >= MIN_FREE_FORMAT_FRAMES;
    const header = parseFreeHeader(bytes, offset);
    if (header?.kind !== first.kind) return false;
    offset += sizeBytes + header.paddingBytes;
  }
  return true;
}

/** Parses the header of a frame in free format. Returns null for other bytes. */
function parseFreeHeader(bytes: Uint8Array, offset: number): FreeHeader | null {
  const [b0 = 0, b1 = 0, b2 = 0] = bytes.subarray(offset, offset + 3);
  const isReserved = (b1 & 0b11000) === 0b01000 || (b1 & 0b110) === 0 || (b2 & 0b1100) === 0b1100;
  if (b0 !== 0xff || b1 < 0xe0 || isReserved || b2 >> 4 !== 0) return null;
  const isLayer1 = (b1 & 0b110) === 0b110;
  return { kind: (b1 & 0b11110) | ((b2 & 0b1100) << 4), paddingBytes: (b2 & 0b10) === 0 ? 0 : isLayer1 ? 4 : 1 };
}

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
/** Types of a first box in ISO BMFF. */
const BOX_TYPES = ['ftyp', 'styp', 'moov', 'mdat', 'wide', 'free', 'skip', 'pnot'];

/** Frame of an elementary audio stream. */
export interface AudioFrame {
  /** Size with header, in bytes. */
  readonly sizeBytes: number;
  readonly seconds: number;
}

/** Header of an MPEG audio frame (ISO/IEC 11172-3 §2.4.2.3, ISO/IEC 13818-3). */
interface MpegFrame extends AudioFrame {
  readonly layer: 1 | 2 | 3;
  /** Bits that all frames of a stream share: version, layer and sample rate. */
  readonly kind: number;
}

/** Returns the offset of the first of several consistent frames, or null. */
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
 * Tells whether `wanted` consecutive frames have one kind. Fewer suffice where they reach exactly to the end of
 * the bytes: any number at the start, but at least `FRAMES_AFTER_GARBAGE` behind garbage, where a single match
 * may be chance.
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

/**
 * Parses the header of a frame. Returns null for other bytes, and for free format, which states no bit rate and
 * so no size.
 */
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

/**
 * Returns the size of a frame. Layer I uses slots of 4 bytes, the others of 1; layer III of MPEG-2 has
 * half the samples.
 */
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

/** Tells whether bytes start like another container, which may hold MPEG frames near its start. */
function startsLikeContainer(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, 8)).toString('latin1');
  return start.startsWith('RIFF') || BOX_TYPES.includes(start.slice(4)) || isUnsupportedContainer(bytes);
}
