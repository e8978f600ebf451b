import { readSyncsafe, writeSyncsafe } from './unsynchronisation.ts';

/** Size of the header at the start of a tag, and of the footer that a v2.4 tag may have. */
export const TAG_HEADER_SIZE_BYTES = 10;

/** Flags of a tag's header (v2.4.0 structure, §3.1; v2.3.0, §3.1). In v2.2, 0x40 says that the tag is compressed. */
export const TAG_FLAGS = { unsynchronisation: 0x80, extendedHeader: 0x40, experimental: 0x20, footer: 0x10 } as const;

/** The versions of ID3v2 that exist: v2.2, v2.3 and v2.4. */
export type Id3Version = 2 | 3 | 4;

/** The first ten bytes of a tag. */
export interface TagHeader {
  readonly version: number;
  readonly revision: number;
  readonly flags: number;
  /** Of everything between header and footer; null where the four bytes are no syncsafe integer. */
  readonly bodySizeBytes: number | null;
}

/** Whether bytes start like a tag. Text that starts with "ID3" does not. */
export function startsLikeTag(bytes: Uint8Array): boolean {
  const [i, d, three, version, revision] = bytes;
  if (version === undefined || revision === undefined) return false;
  return i === 0x49 && d === 0x44 && three === 0x33 && version < 0x10 && revision < 0x10;
}

/** Parses ten bytes that start like a tag. */
export function parseTagHeader(bytes: Buffer): TagHeader {
  return {
    version: bytes.readUInt8(3),
    revision: bytes.readUInt8(4),
    flags: bytes.readUInt8(5),
    bodySizeBytes: readSyncsafe(bytes, 6),
  };
}

/** Size of a whole tag in bytes: header, body, and footer where it has one. */
export function tagSizeBytes({ version, flags }: TagHeader, bodySizeBytes: number): number {
  const hasFooter = version === 4 && (flags & TAG_FLAGS.footer) !== 0;
  return TAG_HEADER_SIZE_BYTES + bodySizeBytes + (hasFooter ? TAG_HEADER_SIZE_BYTES : 0);
}

/** Makes a header (`ID3`), or a footer (`3DI`), which repeats it. */
export function makeTagHeader(magic: 'ID3' | '3DI', header: TagHeader & { bodySizeBytes: number }): Buffer {
  const bytes = Buffer.alloc(TAG_HEADER_SIZE_BYTES);
  bytes.write(magic, 'latin1');
  bytes.set([header.version, header.revision, header.flags], 3);
  writeSyncsafe(header.bodySizeBytes, bytes, 6);
  return bytes;
}
