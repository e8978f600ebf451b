/** The largest frame that encoders make without stating a bit rate: 640 kbit/s at the lowest sample rate, in bytes. */
const MAX_FRAME_BYTES = 5_760;
/** The smallest: a header, and what says how the frame is coded. */
const MIN_FRAME_BYTES = 24;
/** Frames that must follow each other; fewer do only where they reach exactly to the end of the bytes. */
const WANTED_FRAMES = 6;
const FEWEST_FRAMES = 3;

interface FreeHeader {
  /** The bits that all frames of a stream share: version, layer and sample rate. */
  readonly kind: number;
  readonly paddingBytes: number;
}

/**
 * Whether bytes start with MPEG audio of free format, whose frames state no bit rate (ISO/IEC 11172-3 §2.4.2.3): all have
 * one size, but for a slot of padding, and how far it is to the second one tells it.
 */
export function startsFreeFormat(bytes: Uint8Array): boolean {
  const first = parseFreeHeader(bytes, 0);
  if (first === null) return false;
  for (let sizeBytes = MIN_FRAME_BYTES; sizeBytes <= MAX_FRAME_BYTES; sizeBytes++) {
    if (framesFollow(bytes, first, sizeBytes)) return true;
  }
  return false;
}

/** Whether frames of `sizeBytes`, and of their padding, follow each other from the start on. */
function framesFollow(bytes: Uint8Array, first: FreeHeader, sizeBytes: number): boolean {
  let offset = sizeBytes + first.paddingBytes;
  for (let count = 1; count < WANTED_FRAMES; count++) {
    if (offset === bytes.length) return count >= FEWEST_FRAMES;
    const header = parseFreeHeader(bytes, offset);
    if (header?.kind !== first.kind) return false;
    offset += sizeBytes + header.paddingBytes;
  }
  return true;
}

/** The header of a frame that states no bit rate, or null where it is none. */
function parseFreeHeader(bytes: Uint8Array, offset: number): FreeHeader | null {
  const [b0 = 0, b1 = 0, b2 = 0] = bytes.subarray(offset, offset + 3);
  const isReserved = (b1 & 0b11000) === 0b01000 || (b1 & 0b110) === 0 || (b2 & 0b1100) === 0b1100;
  if (b0 !== 0xff || b1 < 0xe0 || isReserved || b2 >> 4 !== 0) return null;
  const isLayer1 = (b1 & 0b110) === 0b110;
  return { kind: (b1 & 0b11110) | ((b2 & 0b1100) << 4), paddingBytes: (b2 & 0b10) === 0 ? 0 : isLayer1 ? 4 : 1 };
}
