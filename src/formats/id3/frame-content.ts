import { frameHeaderSizeBytes, type Id3Frame } from './frames.ts';
import type { TagBody } from './tag-body.ts';
import type { Id3Version } from './tag-header.ts';
import { undoUnsynchronisation, unsynchronisedOffset } from './unsynchronisation.ts';

/** How much of a frame is looked at to find out what it holds: media type, file name and description, or owner. */
const PEEK_SIZE_BYTES = 1024;
/** Size of the length that a v2.4 frame may state before its content. */
const DATA_LENGTH_SIZE_BYTES = 4;

/** The media type of a manifest store in ID3 (C2PA 2.2, annex A.3), and the one it had before. */
const MANIFEST_MEDIA_TYPE = 'application/c2pa';
const MANIFEST_MEDIA_TYPES = [MANIFEST_MEDIA_TYPE, 'application/x-c2pa-manifest-store'];

/** A range of the source in bytes. */
export interface SourceRange {
  readonly offset: number;
  readonly length: number;
}

/** Everything of a GEOB frame's content that stands before the manifest, with text in ISO 8859-1. */
export const MANIFEST_PREFIX = Buffer.from(`\0${MANIFEST_MEDIA_TYPE}\0c2pa\0c2pa manifest store\0`, 'latin1');

/** The frame id of an encapsulated object. */
export function objectFrameId(version: Id3Version): string {
  return version === 2 ? 'GEO' : 'GEOB';
}

/** Where a frame's manifest store stands in the source, or null where the frame holds something else. */
export async function manifestOf(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<SourceRange | null> {
  if (frame.id !== objectFrameId(version)) return null;
  const peek = await peekInto(body, version, frame);
  const encoding = peek.bytes[0];
  const mediaTypeEnd = peek.bytes.indexOf(0, 1);
  if (encoding === undefined || mediaTypeEnd === -1) return null;
  if (!MANIFEST_MEDIA_TYPES.includes(peek.bytes.toString('latin1', 1, mediaTypeEnd))) return null;
  const fileNameEnd = endOfText(peek.bytes, mediaTypeEnd + 1, encoding);
  const descriptionEnd = endOfText(peek.bytes, fileNameEnd, encoding);
  return peek.rangeFrom(descriptionEnd);
}

/** Where a frame's XMP packet stands in the source (XMP specification, part 3, §1.1.2), or null. */
export async function xmpOf(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<SourceRange | null> {
  if (frame.id !== 'PRIV') return null;
  const peek = await peekInto(body, version, frame);
  return peek.bytes.toString('latin1', 0, 4) === 'XMP\0' ? peek.rangeFrom(4) : null;
}

/** The first bytes of a frame's content, and the way from a position in them to a range of the source. */
interface Peek {
  readonly bytes: Buffer;
  rangeFrom(position: number): SourceRange;
}

async function peekInto(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<Peek> {
  const headerEnd = frame.position + frameHeaderSizeBytes(version);
  const frameEnd = headerEnd + frame.sizeBytes;
  const start = Math.min(headerEnd + (frame.hasDataLength ? DATA_LENGTH_SIZE_BYTES : 0), frameEnd);
  const stored = Buffer.from(await body.read(start, Math.min(PEEK_SIZE_BYTES, frameEnd - start)));
  const rangeFrom = (storedPosition: number): SourceRange => {
    const offset = body.sourceOffset(Math.min(start + storedPosition, frameEnd));
    return { offset, length: body.sourceOffset(frameEnd) - offset };
  };
  if (!frame.isUnsynchronised) return { bytes: stored, rangeFrom };
  return {
    bytes: undoUnsynchronisation(stored),
    rangeFrom: (position) => rangeFrom(unsynchronisedOffset(stored, position)),
  };
}

/** Position behind the terminator of a text; two zero bytes on an even position end UTF-16 (encodings 1 and 2). */
function endOfText(bytes: Buffer, start: number, encoding: number): number {
  const width = encoding === 1 || encoding === 2 ? 2 : 1;
  for (let position = start; position + width <= bytes.length; position += width) {
    if (bytes.readUIntBE(position, width) === 0) return position + width;
  }
  return bytes.length;
}
