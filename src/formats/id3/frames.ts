import { AppError } from '#errors/app-error.ts';
import type { TagBody } from './tag-body.ts';
import type { Id3Version } from './tag-header.ts';
import { MAX_SYNCSAFE, readSyncsafe, writeSyncsafe } from './unsynchronisation.ts';

/** Bound of the frames in one tag; long books with a chapter frame and a picture each hold a few thousand. */
const MAX_FRAMES = 16_384;

/** Flags in the second flag byte of a frame's header (v2.4.0 structure, §4.1; v2.3.0, §3.3.1). */
const FRAME_FLAGS = {
  3: { compression: 0x80, encryption: 0x40, grouping: 0x20, unsynchronisation: 0, dataLength: 0 },
  4: { compression: 0x08, encryption: 0x04, grouping: 0x40, unsynchronisation: 0x02, dataLength: 0x01 },
} as const;

/** One frame of a tag. Positions count from the start of the tag's body. */
export interface Id3Frame {
  /** Four characters, in v2.2 three. */
  readonly id: string;
  /** Of the frame's header. */
  readonly position: number;
  /** Of what follows the header. */
  readonly sizeBytes: number;
  /** The header as it has to be written, where it cannot stay as it is. */
  readonly repairedHeader: Buffer | null;
  readonly isCompressed: boolean;
  readonly isEncrypted: boolean;
  readonly isGrouped: boolean;
  readonly isUnsynchronised: boolean;
  /** True where four bytes before the content give its length. */
  readonly hasDataLength: boolean;
}

/** The frames of a tag and where they end: at padding, at bytes that are no frame, or with the tag. */
export interface FrameWalk {
  readonly frames: readonly Id3Frame[];
  readonly end: number;
  /** What lies between `end` and the end of the tag: zeros that leave room, or bytes that make no sense. */
  readonly rest: 'nothing' | 'padding' | 'junk';
}

/** What the frames of a tag depend on. */
export interface FrameContext {
  /** Name of the source, for errors. */
  readonly name: string;
  readonly version: Id3Version;
  readonly body: TagBody;
  /** True where a v2.4 tag says that all of its frames are unsynchronised. */
  readonly allUnsynchronised: boolean;
}

export function frameHeaderSizeBytes(version: Id3Version): number {
  return version === 2 ? 6 : 10;
}

/** Walks the frames of a tag from `start` on, reading nothing but their headers. */
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

/** A frame's header as a tag of this version has it. */
export function makeFrameHeader(version: Id3Version, id: string, sizeBytes: number, flags = 0): Buffer {
  const header = Buffer.alloc(frameHeaderSizeBytes(version));
  header.write(id, 'latin1');
  if (version === 2) header.writeUIntBE(sizeBytes, 3, 3);
  else if (version === 3) header.writeUInt32BE(sizeBytes, 4);
  else writeSyncsafe(sizeBytes, header, 4);
  if (version !== 2) header.writeUInt16BE(flags, 8);
  return header;
}

/** The largest frame that a header of this version can describe, in bytes. */
export function maxFrameSizeBytes(version: Id3Version): number {
  return version === 2 ? 0xff_ffff : MAX_SYNCSAFE;
}

/** What lies at a position that no frame starts at, or null where one does. */
async function restAt({ body, version }: FrameContext, position: number): Promise<FrameWalk['rest'] | null> {
  const remaining = body.sizeBytes - position;
  if (remaining <= 0) return 'nothing';
  const length = Math.min(remaining, frameHeaderSizeBytes(version));
  const bytes = await body.read(position, length);
  if (bytes[0] === 0) return 'padding';
  return length === frameHeaderSizeBytes(version) && isFrameId(bytes, version) ? null : 'junk';
}

/** Taggers that turn v2.2 into v2.3 have left ids of three characters behind, filled up with NUL or a space. */
function isFrameId(bytes: Buffer, version: Id3Version): boolean {
  return version === 2
    ? /^[A-Z0-9]{3}$/.test(bytes.toString('latin1', 0, 3))
    : /^[A-Z0-9]{3}[A-Z0-9 \0]$/.test(bytes.toString('latin1', 0, 4));
}

/** Reads the frame at a position, or null where none of the sizes its header may mean fits into the tag. */
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
 * The size of a frame. v2.4 sizes are syncsafe and v2.3 sizes are not, but old iTunes wrote plain sizes into v2.4 tags
 * and others syncsafe ones into v2.3 tags. The reading of the tag's version wins if a frame, padding or the tag's end
 * follows; else the other reading if that makes sense; else whichever lies inside the tag.
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
