import { AppError } from '#errors/app-error.ts';
import type { Id3Version, TagBody } from './tag-structure.ts';
import { MAX_SYNCSAFE, readSyncsafe, writeSyncsafe } from './tag-structure.ts';

/**
 * Largest number of frames in one tag; a long audio book with a frame and a picture for each chapter has
 * a few thousand.
 */
const MAX_FRAMES = 16_384;

/** Flags in the second flag byte of a frame's header (v2.4.0 structure, §4.1; v2.3.0, §3.3.1). */
const FRAME_FLAGS = {
  3: { compression: 0x80, encryption: 0x40, grouping: 0x20, unsynchronisation: 0, dataLength: 0 },
  4: { compression: 0x08, encryption: 0x04, grouping: 0x40, unsynchronisation: 0x02, dataLength: 0x01 },
} as const;

/** Frame of a tag. Positions count from the start of the tag's body. */
export interface Id3Frame {
  /** Four characters; three in v2.2. */
  readonly id: string;
  /** Position of the frame's header. */
  readonly position: number;
  /** Size of the content behind the header. */
  readonly sizeBytes: number;
  /** Corrected header, where the stored one is invalid; else null. */
  readonly repairedHeader: Buffer | null;
  readonly isCompressed: boolean;
  readonly isEncrypted: boolean;
  readonly isGrouped: boolean;
  readonly isUnsynchronised: boolean;
  /** True where a data length indicator of 4 bytes precedes the content. */
  readonly hasDataLength: boolean;
}

/** Frames of a tag and their end: at padding, at bytes that are not a frame, or with the tag. */
export interface FrameWalk {
  readonly frames: readonly Id3Frame[];
  readonly end: number;
  /** Content between `end` and the end of the tag: padding of zeros, or invalid bytes. */
  readonly rest: 'nothing' | 'padding' | 'junk';
}

/** Properties of a tag that its frames depend on. */
export interface FrameContext {
  /** Name of the source, for error messages. */
  readonly name: string;
  readonly version: Id3Version;
  readonly body: TagBody;
  /** True where a v2.4 tag marks all of its frames as unsynchronised. */
  readonly allUnsynchronised: boolean;
}

export function frameHeaderSizeBytes(version: Id3Version): number {
  return version === 2 ? 6 : 10;
}

/** Walks the frames of a tag from `start`, reading their headers only. Throws `ID3_TOO_MANY_FRAMES`. */
export async function readFrames(context: FrameContext, start: number): Promise<FrameWalk> {
  const frames: Id3Frame[] = [];
  let position = start;
  for (;;) {
    const rest = await restAt(context, position);
    if (rest !== null) return { frames, end: position, rest };
    const frame = await readFrame(context, position);
    if (frame === null) return { frames, end: position, rest: 'junk' };
    if (frames.length === MAX_FRAMES) {
      const offset = context.body.sourceOffset(position);
      throw new AppError('ID3_TOO_MANY_FRAMES', { name: context.name, offset, maxFrames: MAX_FRAMES });
    }
    frames.push(frame);
    position = endOfFrame(context.version, frame);
  }
}

export function endOfFrame(version: Id3Version, frame: Id3Frame): number {
  return frame.position + frameHeaderSizeBytes(version) + frame.sizeBytes;
}

/** Returns the header of a frame in a tag of this version. */
export function makeFrameHeader(version: Id3Version, id: string, sizeBytes: number, flags = 0): Buffer {
  const header = Buffer.alloc(frameHeaderSizeBytes(version));
  header.write(id, 'latin1');
  if (version === 2) header.writeUIntBE(sizeBytes, 3, 3);
  else if (version === 3) header.writeUInt32BE(sizeBytes, 4);
  else writeSyncsafe(sizeBytes, header, 4);
  if (version !== 2) header.writeUInt16BE(flags, 8);
  return header;
}

/** Returns the largest frame size that a header of this version can hold, in bytes. */
export function maxFrameSizeBytes(version: Id3Version): number {
  return version === 2 ? 0xff_ffff : MAX_SYNCSAFE;
}

/** Returns the kind of content at a position, or null where a frame starts. */
async function restAt({ body, version }: FrameContext, position: number): Promise<FrameWalk['rest'] | null> {
  const remaining = body.sizeBytes - position;
  if (remaining <= 0) return 'nothing';
  const length = Math.min(remaining, frameHeaderSizeBytes(version));
  const bytes = await body.read(position, length);
  if (bytes[0] === 0) return 'padding';
  return length === frameHeaderSizeBytes(version) && isFrameId(bytes, version) ? null : 'junk';
}

/**
 * Tells whether bytes are a frame id. Converters from v2.2 leave ids of three characters, padded with NUL or a space.
 */
function isFrameId(bytes: Buffer, version: Id3Version): boolean {
  return version === 2
    ? /^[A-Z0-9]{3}$/.test(bytes.toString('latin1', 0, 3))
    : /^[A-Z0-9]{3}[A-Z0-9 \0]$/.test(bytes.toString('latin1', 0, 4));
}

/** Reads the frame at a position. Returns null where no reading of its size fits into the tag. */
async function readFrame(context: FrameContext, position: number): Promise<Id3Frame | null> {
  const { version, body } = context;
  const header = Buffer.from(await body.read(position, frameHeaderSizeBytes(version)));
  const id = header.toString('latin1', 0, version === 2 ? 3 : 4);
  const sizeBytes = await sizeOfFrame(context, header, position);
  if (sizeBytes === null) return null;
  if (version === 2) return { id, position, sizeBytes, repairedHeader: null, ...NO_FLAGS };

  const meanings = FRAME_FLAGS[version];
  const storedFlags = header.readUInt16BE(8);
  const flags = context.allUnsynchronised ? storedFlags | meanings.unsynchronisation : storedFlags;
  const wanted = makeFrameHeader(version, id, sizeBytes, flags);
  return {
    id,
    position,
    sizeBytes,
    repairedHeader: wanted.equals(header) ? null : wanted,
    isCompressed: (flags & meanings.compression) !== 0,
    isEncrypted: (flags & meanings.encryption) !== 0,
    isGrouped: (flags & meanings.grouping) !== 0,
    isUnsynchronised: (flags & meanings.unsynchronisation) !== 0,
    hasDataLength: (flags & meanings.dataLength) !== 0,
  };
}

const NO_FLAGS = {
  isCompressed: false,
  isEncrypted: false,
  isGrouped: false,
  isUnsynchronised: false,
  hasDataLength: false,
} as const;

/**
 * Returns the size of a frame. Sizes are syncsafe in v2.4 and plain in v2.3, but old iTunes wrote plain sizes into v2.4
 * tags, and other programs syncsafe sizes into v2.3 tags. Prefers the reading of the tag's version if a frame, padding
 * or the tag's end follows; then the other reading under the same condition; then whichever lies inside the tag.
 */
async function sizeOfFrame(context: FrameContext, header: Buffer, position: number): Promise<number | null> {
  const { version, body } = context;
  const contentStart = position + frameHeaderSizeBytes(version);
  const available = body.sizeBytes - contentStart;
  const readings = readingsOfSize(version, header).filter((sizeBytes) => sizeBytes <= available);
  for (const sizeBytes of readings) {
    if (readings.length === 1) break;
    const rest = await restAt(context, contentStart + sizeBytes);
    if (rest !== 'junk') return sizeBytes;
  }
  return readings[0] ?? null;
}

function readingsOfSize(version: Id3Version, header: Buffer): number[] {
  if (version === 2) return [header.readUIntBE(3, 3)];
  const plain = header.readUInt32BE(4);
  const syncsafe = readSyncsafe(header, 4);
  if (syncsafe === null || syncsafe === plain) return [plain];
  return version === 3 ? [plain, syncsafe] : [syncsafe, plain];
}
