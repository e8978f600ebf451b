import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { ByteRange, ManifestElement } from '../format-handler.ts';
import {
  manifestOf,
  type StoredOffsets,
  storedOffsetsOf,
  type Unreadable,
  unreadabilityOf,
  xmpOf,
} from './frame-contents.ts';
import { endOfFrame, type FrameContext, type FrameWalk, type Id3Frame, readFrames } from './frames.ts';
import {
  type Id3Version,
  parseTagHeader,
  plainBody,
  readSyncsafe,
  startsLikeTag,
  TAG_FLAGS,
  TAG_HEADER_SIZE_BYTES,
  type TagBody,
  type TagHeader,
  tagSizeBytes,
  unsynchronisedBody,
} from './tag-structure.ts';

/** Largest number of consecutive tags at the start of a file; careless taggers leave two or three. */
const MAX_TAGS = 16;

/** ID3v2 tag of a file. Offsets and sizes in bytes. */
export interface Id3Tag {
  /** Offset of the header, counted from the start of the file. */
  readonly offset: number;
  /** End of the tag, its footer included. */
  readonly endOffset: number;
  readonly version: Id3Version;
  readonly revision: number;
  readonly flags: number;
  readonly body: TagBody;
  /** Size of the extended header at the start of the body, where it can be kept; else 0. */
  readonly extendedHeaderSizeBytes: number;
  readonly walk: FrameWalk;
  /** Frames with a manifest store, and the source range of the first store. */
  readonly manifestFrames: ReadonlySet<Id3Frame>;
  readonly manifest: ByteRange | null;
  readonly elements: readonly ManifestElement[];
  readonly xmp: ByteRange | null;
  /** File offsets stored in frames, which move with the audio. */
  readonly storedOffsets: ReadonlyMap<Id3Frame, StoredOffsets>;
  /** Frames that C2PA readers cannot decode, with the reason. */
  readonly unreadableFrames: ReadonlyMap<Id3Frame, Unreadable>;
}

type Findings = Pick<Id3Tag, 'manifestFrames' | 'manifest' | 'elements' | 'xmp' | 'storedOffsets' | 'unreadableFrames'>;

/** Reads the consecutive tags at the start of a file. Throws `ID3_*` errors that name the offset. */
export async function readTags(source: ByteSource, signal: AbortSignal): Promise<Id3Tag[]> {
  const tags: Id3Tag[] = [];
  let offset = 0;
  while (offset + TAG_HEADER_SIZE_BYTES <= source.sizeBytes) {
    const bytes = await readRange(source, offset, TAG_HEADER_SIZE_BYTES, signal);
    if (!startsLikeTag(bytes)) break;
    if (tags.length === MAX_TAGS) {
      throw new AppError('ID3_TOO_MANY_TAGS', { name: source.name, offset, maxTags: MAX_TAGS });
    }
    const tag = await readTag(source, offset, parseTagHeader(bytes), signal);
    tags.push(tag);
    offset = tag.endOffset;
  }
  return tags;
}

async function readTag(source: ByteSource, offset: number, header: TagHeader, signal: AbortSignal): Promise<Id3Tag> {
  const { name } = source;
  const { version, revision, flags } = header;
  const fail = (problem: string): AppError => new AppError('ID3_HEADER_INVALID', { name, offset, problem });
  if (!isKnownVersion(version)) throw fail(`its version 2.${version} does not exist`);
  if (header.bodySizeBytes === null) throw fail('its size is not a syncsafe integer');
  if (version === 2 && (flags & TAG_FLAGS.extendedHeader) !== 0) throw fail('it is compressed as a whole');
  const sizeBytes = tagSizeBytes(header, header.bodySizeBytes);
  if (offset + sizeBytes > source.sizeBytes) {
    throw new AppError('ID3_TAG_EXCEEDS_FILE', { name, offset, sizeBytes, fileSizeBytes: source.sizeBytes });
  }

  const isUnsynchronised = (flags & TAG_FLAGS.unsynchronisation) !== 0;
  const makeBody = isUnsynchronised && version !== 4 ? unsynchronisedBody : plainBody;
  const body = await makeBody(source, offset + TAG_HEADER_SIZE_BYTES, header.bodySizeBytes, signal);
  const extended = await readExtendedHeader(version, flags, body);
  if (extended === null) throw fail('its extended header has a wrong size');
  const context: FrameContext = { name, version, body, allUnsynchronised: isUnsynchronised && version === 4 };
  const walk = await readFrames(context, extended.sizeBytes);
  return {
    offset,
    endOffset: offset + sizeBytes,
    version,
    revision,
    flags,
    body,
    extendedHeaderSizeBytes: extended.canBeKept ? extended.sizeBytes : 0,
    walk,
    ...(await inspectFrames(context, walk.frames)),
  };
}

function isKnownVersion(version: number): version is Id3Version {
  return version === 2 || version === 3 || version === 4;
}

/**
 * Returns the size of the extended header, 0 where there is none, or null where it is invalid. It cannot be kept where
 * it has a checksum of the frames (v2.4.0 structure, §3.2), which a new frame invalidates; nor in v2.3, where C2PA
 * readers misread its size, and where it has only that checksum and the size of the padding.
 */
async function readExtendedHeader(
  version: Id3Version,
  flags: number,
  body: TagBody,
): Promise<{ sizeBytes: number; canBeKept: boolean } | null> {
  const minSizeBytes = 6;
  if (version === 2 || (flags & TAG_FLAGS.extendedHeader) === 0) return { sizeBytes: 0, canBeKept: false };
  if (body.sizeBytes < minSizeBytes) return null;
  const bytes = await body.read(0, minSizeBytes);
  const sizeBytes = version === 3 ? bytes.readUInt32BE(0) + 4 : readSyncsafe(bytes, 0);
  if (sizeBytes === null || sizeBytes < minSizeBytes || sizeBytes > body.sizeBytes) return null;
  const hasChecksum = (bytes.readUInt8(5) & 0x20) !== 0;
  return { sizeBytes, canBeKept: version === 4 && !hasChecksum };
}

async function inspectFrames(context: FrameContext, frames: readonly Id3Frame[]): Promise<Findings> {
  const { body, version } = context;
  const manifestFrames = new Set<Id3Frame>();
  const storedOffsets = new Map<Id3Frame, StoredOffsets>();
  const unreadableFrames = new Map<Id3Frame, Unreadable>();
  const elements: ManifestElement[] = [];
  let manifest: ByteRange | null = null;
  let xmp: ByteRange | null = null;
  for (const frame of frames) {
    const store = await manifestOf(body, version, frame);
    if (store !== null) {
      manifestFrames.add(frame);
      const offset = body.sourceOffset(frame.position);
      elements.push({ offset, length: body.sourceOffset(endOfFrame(version, frame)) - offset, content: store });
    }
    manifest ??= store;
    xmp ??= await xmpOf(body, version, frame);
    const offsets = await storedOffsetsOf(body, version, frame);
    if (offsets !== null) storedOffsets.set(frame, offsets);
    const unreadable = await unreadabilityOf(context, frame);
    if (unreadable !== null) unreadableFrames.set(frame, unreadable);
  }
  return { manifestFrames, manifest, elements, xmp, storedOffsets, unreadableFrames };
}
