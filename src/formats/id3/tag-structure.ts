import { type ByteSource, ReadWindow, readRange } from '#bytes/byte-source.ts';
import type { Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';

/** Largest tag that is unsynchronised as a whole: it is rewritten in memory. */
const MAX_UNSYNCHRONISED_SIZE_BYTES = 64 * 1024 * 1024;
/** Largest value of a syncsafe integer of 4 bytes: 256 MiB - 1. */
export const MAX_SYNCSAFE = 0x0fff_ffff;
/** Size of a tag's header, and of the footer that a v2.4 tag may have. */
export const TAG_HEADER_SIZE_BYTES = 10;
/** Flags of a tag's header (v2.4.0 structure, §3.1; v2.3.0, §3.1). In v2.2, 0x40 marks a compressed tag. */
export const TAG_FLAGS = { unsynchronisation: 0x80, extendedHeader: 0x40, experimental: 0x20, footer: 0x10 } as const;

/** Version of ID3v2: v2.2, v2.3 or v2.4. */
export type Id3Version = 2 | 3 | 4;

/** Header of a tag: its first ten bytes. */
export interface TagHeader {
  readonly version: number;
  readonly revision: number;
  readonly flags: number;
  /** Size of the body between header and footer; null where the four bytes are not a syncsafe integer. */
  readonly bodySizeBytes: number | null;
}

/** Tells whether bytes start with a tag's header. Text that starts with "ID3" does not. */
export function startsLikeTag(bytes: Uint8Array): boolean {
  const [i, d, three, version, revision] = bytes;
  if (version === undefined || revision === undefined) return false;
  return i === 0x49 && d === 0x44 && three === 0x33 && version < 0x10 && revision < 0x10;
}

/** Parses the ten bytes of a header. */
export function parseTagHeader(bytes: Buffer): TagHeader {
  return {
    version: bytes.readUInt8(3),
    revision: bytes.readUInt8(4),
    flags: bytes.readUInt8(5),
    bodySizeBytes: readSyncsafe(bytes, 6),
  };
}

/** Returns the size of a complete tag in bytes: header, body, and footer if any. */
export function tagSizeBytes({ version, flags }: TagHeader, bodySizeBytes: number): number {
  const hasFooter = version === 4 && (flags & TAG_FLAGS.footer) !== 0;
  return TAG_HEADER_SIZE_BYTES + bodySizeBytes + (hasFooter ? TAG_HEADER_SIZE_BYTES : 0);
}

/** Returns a header (`ID3`), or a footer (`3DI`), which repeats it. */
export function makeTagHeader(magic: 'ID3' | '3DI', header: TagHeader & { bodySizeBytes: number }): Buffer {
  const bytes = Buffer.alloc(TAG_HEADER_SIZE_BYTES);
  bytes.write(magic, 'latin1');
  bytes.set([header.version, header.revision, header.flags], 3);
  writeSyncsafe(header.bodySizeBytes, bytes, 6);
  return bytes;
}

/**
 * Body of a tag, between header and footer, with unsynchronisation of the whole tag undone. Positions count from the
 * start of the body.
 */
export interface TagBody {
  readonly sizeBytes: number;
  read(position: number, length: number): Promise<Buffer>;
  /** Returns splices that write the bytes `[start, end)` of the body. */
  splices(start: number, end: number): Splice[];
  /** Maps a position of the body to an offset in the source. */
  sourceOffset(position: number): number;
}

/** Returns a body whose bytes are copied from the source as they are; only headers are read. */
export function plainBody(source: ByteSource, offset: number, sizeBytes: number, signal: AbortSignal): TagBody {
  const window = new ReadWindow(source, signal);
  return {
    sizeBytes,
    read: (position, length) => window.read(offset + position, length),
    splices: (start, end) =>
      end > start ? [{ kind: 'copy', offset: offset + start, length: end - start, into: 'flat' }] : [],
    sourceOffset: (position) => offset + position,
  };
}

/** Reads a body that v2.2 or v2.3 unsynchronised as a whole into memory. Throws `ID3_UNSYNCHRONISED_TAG_TOO_LARGE`. */
export async function unsynchronisedBody(
  source: ByteSource,
  offset: number,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<TagBody> {
  const maxSizeBytes = MAX_UNSYNCHRONISED_SIZE_BYTES;
  if (sizeBytes > maxSizeBytes) {
    throw new AppError('ID3_UNSYNCHRONISED_TAG_TOO_LARGE', { name: source.name, offset, sizeBytes, maxSizeBytes });
  }
  const stored = await readRange(source, offset, sizeBytes, signal);
  const undone = undoUnsynchronisation(stored);
  return {
    sizeBytes: undone.length,
    read: async (position, length) => undone.subarray(position, position + length),
    splices: (start, end) =>
      end > start ? [{ kind: 'insert', bytes: undone.subarray(start, end), into: 'flat' }] : [],
    sourceOffset: (position) => offset + unsynchronisedOffset(stored, position),
  };
}

/**
 * Unsynchronisation in ID3v2 (v2.4.0 structure, §6.1): a zero byte is inserted behind every 0xFF, so that no
 * pair of bytes looks like the start of an MPEG frame. Sizes of tags avoid such pairs by using 7 bits of
 * each byte ("syncsafe").
 */

/** Reads a syncsafe integer of 4 bytes. Returns null where a byte has its top bit set. */
export function readSyncsafe(bytes: Uint8Array, offset: number): number | null {
  let value = 0;
  for (const byte of bytes.subarray(offset, offset + 4)) {
    if (byte >= 0x80) return null;
    value = value * 0x80 + byte;
  }
  return value;
}

/** Writes a syncsafe integer of 4 bytes. */
export function writeSyncsafe(value: number, bytes: Uint8Array, offset: number): void {
  for (let index = 0; index < 4; index++) bytes[offset + index] = (value >> (7 * (3 - index))) & 0x7f;
}

/** Returns the bytes as they were before unsynchronisation. */
export function undoUnsynchronisation(bytes: Uint8Array): Buffer {
  const undone = Buffer.allocUnsafe(bytes.length);
  let length = 0;
  let afterFf = false;
  for (const byte of bytes) {
    const isStuffing = afterFf && byte === 0;
    if (!isStuffing) undone[length++] = byte;
    afterFf = byte === 0xff;
  }
  return undone.subarray(0, length);
}

/** Maps an offset in bytes with unsynchronisation undone to the offset in the unsynchronised bytes. */
export function unsynchronisedOffset(bytes: Uint8Array, undoneOffset: number): number {
  let undoneCount = 0;
  let afterFf = false;
  for (const [offset, byte] of bytes.entries()) {
    const isStuffing = afterFf && byte === 0;
    if (!isStuffing && undoneCount++ === undoneOffset) return offset;
    afterFf = byte === 0xff;
  }
  return bytes.length;
}
