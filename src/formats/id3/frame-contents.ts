import type { Splice } from '#bytes/splice-plan.ts';
import type { ByteRange } from '../format-handler.ts';
import { type FrameContext, frameHeaderSizeBytes, type Id3Frame, readFrames } from './frames.ts';
import { type Id3Version, type TagBody, undoUnsynchronisation, unsynchronisedOffset } from './tag-structure.ts';

/** Number of bytes read from a frame's content: they hold media type, file name and description, or the owner. */
const PEEK_SIZE_BYTES = 1024;
/** Size of the data length indicator that a v2.4 frame may have before its content. */
const DATA_LENGTH_SIZE_BYTES = 4;
/** Media type of a manifest store in ID3 (C2PA 2.2, annex A.3), and the one in earlier versions. */
const MANIFEST_MEDIA_TYPE = 'application/c2pa';
const MANIFEST_MEDIA_TYPES = [MANIFEST_MEDIA_TYPE, 'application/x-c2pa-manifest-store'];
/** Largest element id of a chapter that is searched for its terminator. */
const MAX_ELEMENT_ID_BYTES = 256;
const OFFSET_SIZE_BYTES = 4;
/** Value of a chapter's offset that is not known (ID3v2 Chapter Frame Addendum, §3.1). */
const OFFSET_UNKNOWN = 0xffff_ffff;

/** Consecutive file offsets in a frame, 4 bytes each. */
export interface StoredOffsets {
  /** Position of the first offset, counted from the start of the tag's body. */
  readonly position: number;
  readonly values: readonly number[];
}

/**
 * Returns the file offsets that a frame stores: a chapter's start and end (`CHAP`) and the start of the indexed audio
 * (`ASPI`; v2.4.0 frames, §4.30). Returns null where it stores none, or in a form that cannot be patched in place.
 */
export async function storedOffsetsOf(
  body: TagBody,
  version: Id3Version,
  frame: Id3Frame,
): Promise<StoredOffsets | null> {
  if (frame.id !== 'CHAP' && frame.id !== 'ASPI') return null;
  if (frame.isCompressed || frame.isEncrypted || frame.isUnsynchronised || frame.hasDataLength) return null;
  const contentStart = frame.position + frameHeaderSizeBytes(version);
  const peek = await body.read(contentStart, Math.min(frame.sizeBytes, MAX_ELEMENT_ID_BYTES));
  if (frame.id === 'ASPI') return offsetsAt(peek, contentStart, 0, 1);
  const elementIdEnd = peek.indexOf(0) + 1;
  const timesSizeBytes = 2 * 4;
  return elementIdEnd === 0 ? null : offsetsAt(peek, contentStart, elementIdEnd + timesSizeBytes, 2);
}

function offsetsAt(peek: Buffer, contentStart: number, start: number, count: number): StoredOffsets | null {
  if (start + count * OFFSET_SIZE_BYTES > peek.length) return null;
  const values = Array.from({ length: count }, (_, index) => peek.readUInt32BE(start + index * OFFSET_SIZE_BYTES));
  return { position: contentStart + start, values };
}

/** Returns the end of the stored offsets in the tag's body. */
export function endOfOffsets({ position, values }: StoredOffsets): number {
  return position + values.length * OFFSET_SIZE_BYTES;
}

/**
 * Returns the offsets after the audio, which started at `audioOffset`, has moved by `shiftBytes`. An offset before the
 * audio has no meaning (some taggers write 0) and stays.
 */
export function shiftOffsets({ values }: StoredOffsets, audioOffset: number, shiftBytes: number): Splice {
  const bytes = Buffer.alloc(values.length * OFFSET_SIZE_BYTES);
  for (const [index, value] of values.entries()) {
    const pointsAtAudio = value >= audioOffset && value !== OFFSET_UNKNOWN;
    const shifted = pointsAtAudio ? value + shiftBytes : value;
    bytes.writeUInt32BE(Math.min(shifted, OFFSET_UNKNOWN), index * OFFSET_SIZE_BYTES);
  }
  return { kind: 'insert', bytes, into: 'flat' };
}

/** Fields of a GEOB frame before the manifest (v2.4.0 frames, §4.15), with text in ISO 8859-1. */
export const MANIFEST_PREFIX = Buffer.from(`\0${MANIFEST_MEDIA_TYPE}\0c2pa\0c2pa manifest store\0`, 'latin1');

/** Returns the frame id of a general encapsulated object. */
export function objectFrameId(version: Id3Version): string {
  return version === 2 ? 'GEO' : 'GEOB';
}

/** Returns the source range of a frame's manifest store, or null where the frame holds something else. */
export async function manifestOf(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<ByteRange | null> {
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

/** Returns the source range of a frame's XMP packet (XMP specification, part 3, §1.1.2), or null. */
export async function xmpOf(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<ByteRange | null> {
  if (frame.id !== 'PRIV') return null;
  const peek = await peekInto(body, version, frame);
  return peek.bytes.toString('latin1', 0, 4) === 'XMP\0' ? peek.rangeFrom(4) : null;
}

/** First bytes of a frame's content, with a mapping from positions in them to ranges of the source. */
interface Peek {
  readonly bytes: Buffer;
  rangeFrom(position: number): ByteRange;
}

async function peekInto(body: TagBody, version: Id3Version, frame: Id3Frame): Promise<Peek> {
  const headerEnd = frame.position + frameHeaderSizeBytes(version);
  const frameEnd = headerEnd + frame.sizeBytes;
  const start = Math.min(headerEnd + (frame.hasDataLength ? DATA_LENGTH_SIZE_BYTES : 0), frameEnd);
  const stored = Buffer.from(await body.read(start, Math.min(PEEK_SIZE_BYTES, frameEnd - start)));
  const rangeFrom = (storedPosition: number): ByteRange => {
    const offset = body.sourceOffset(Math.min(start + storedPosition, frameEnd));
    return { offset, length: body.sourceOffset(frameEnd) - offset };
  };
  if (!frame.isUnsynchronised) return { bytes: stored, rangeFrom };
  return {
    bytes: undoUnsynchronisation(stored),
    rangeFrom: (position) => rangeFrom(unsynchronisedOffset(stored, position)),
  };
}

/** Returns the position behind the terminator of a text. UTF-16 (encodings 1 and 2) ends with two zero bytes. */
function endOfText(bytes: Buffer, start: number, encoding: number): number {
  const length = endOfTerminated(bytes.subarray(start), widthOf(encoding));
  return length === null ? bytes.length : start + length;
}

// C2PA readers decode every frame of a tag, and discard the whole tag, with the manifest in it, at the first frame that
// they cannot decode. In doubt, a frame is called unreadable.

/** Largest part of a frame's content that is decoded; a longer one is judged by its start. */
const MAX_DECODED_SIZE_BYTES = 64 * 1024;
/** Frames that contain frames: chapters and tables of contents. A second level of nesting counts as unreadable. */
const NESTING_IDS = ['CHAP', 'CTOC'];
/** Lookup tables of positions in MPEG audio: bit fields that hardly anybody writes and readers parse differently. */
const LOOKUP_TABLE_IDS = ['MLLT', 'MLL'];

/**
 * Part of a frame's content in the grammar of the frames that C2PA readers decode (v2.4.0 frames, §4): a text encoding
 * byte; a terminated text in that encoding, or in ISO 8859-1; a text, several texts or a URL up to the end of the frame; a
 * number of arbitrary bytes. Anything may follow the last part.
 */
type Part = 'encoding' | 'text' | 'latin1' | 'last text' | 'last texts' | 'last url' | 'picture format' | 1 | 3;

const PARTS_BY_ID: ReadonlyMap<string, readonly Part[]> = new Map(
  Object.entries({
    TXXX: ['encoding', 'text', 'last text'],
    TXX: ['encoding', 'text', 'last text'],
    WXXX: ['encoding', 'text'],
    WXX: ['encoding', 'text'],
    COMM: ['encoding', 3, 'text', 'last text'],
    COM: ['encoding', 3, 'text', 'last text'],
    USLT: ['encoding', 3, 'text', 'last text'],
    ULT: ['encoding', 3, 'text', 'last text'],
    IPLS: ['encoding', 'last texts'],
    IPL: ['encoding', 'last texts'],
    TMCL: ['encoding', 'last texts'],
    TIPL: ['encoding', 'last texts'],
    GRP1: ['encoding', 'last text'],
    APIC: ['encoding', 'latin1', 1, 'text'],
    PIC: ['encoding', 'picture format', 1, 'text'],
    GEOB: ['encoding', 'latin1', 'text', 'text'],
    GEO: ['encoding', 'latin1', 'text', 'text'],
    POPM: ['latin1', 1],
    POP: ['latin1', 1],
    PRIV: ['latin1'],
    UFID: ['latin1'],
  }),
);

/** Content of a frame, or its start where `isWhole` is false. */
interface FrameContent {
  readonly content: Buffer;
  readonly isWhole: boolean;
  /** True since v2.4: a text may hold several values. Before, it ends at its first terminator. */
  readonly hasSeveralValues: boolean;
}

/** Tells whether the content of a frame matches the grammar of its id. Ids without a grammar always match. */
function fitsGrammar(id: string, { content, isWhole, hasSeveralValues }: FrameContent): boolean {
  if (id === 'SYLT' || id === 'SLT') return isWhole && areSynchronisedLyrics(content);
  let encoding = 0;
  let position = 0;
  for (const part of partsOf(id)) {
    const rest = content.subarray(position);
    const end = endOfPart(part, rest, encoding);
    if (end === null) return false;
    if (part === 'encoding') encoding = rest[0] ?? 0;
    if (part === 'text' && !isText(rest.subarray(0, end - widthOf(encoding)), encoding)) return false;
    if (isWhole && !isLastPartText(part, rest, encoding, hasSeveralValues)) return false;
    position += end;
  }
  return true;
}

function partsOf(id: string): readonly Part[] {
  const parts = PARTS_BY_ID.get(id);
  if (parts !== undefined) return parts;
  if (id.startsWith('T')) return ['encoding', 'last text'];
  return id.startsWith('W') ? ['last url'] : [];
}

/** Returns the length of a part at the start of `rest`, its terminator included, or null where it is missing. */
function endOfPart(part: Part, rest: Buffer, encoding: number): number | null {
  switch (part) {
    case 'encoding':
      return (rest[0] ?? 0xff) <= 3 ? 1 : null;
    case 'text':
      return endOfTerminated(rest, widthOf(encoding));
    case 'latin1':
      return endOfTerminated(rest, 1);
    case 'picture format':
      return ['PNG', 'JPG'].includes(rest.toString('latin1', 0, 3)) ? 3 : null;
    case 'last text':
    case 'last texts':
    case 'last url':
      return rest.length;
    default:
      return rest.length >= part ? part : null;
  }
}

function isLastPartText(part: Part, rest: Buffer, encoding: number, hasSeveralValues: boolean): boolean {
  const [first = rest] = splitTexts(rest, widthOf(encoding));
  if (part === 'last url') return isText(rest, 3);
  if (part === 'last text') return isText(hasSeveralValues ? rest : first, encoding);
  if (part === 'last texts') return splitTexts(rest, widthOf(encoding)).every((text) => isText(text, encoding));
  return true;
}

/** Tells whether content is a description and texts, each followed by a time stamp of 4 bytes (v2.4.0 frames, §4.9). */
function areSynchronisedLyrics(content: Buffer): boolean {
  const [encoding = 0xff, , , , timeStampFormat = 0, contentType = 0xff] = content;
  if (encoding > 1 || ![1, 2].includes(timeStampFormat) || contentType > 6) return false;
  const width = widthOf(encoding);
  let position = 6;
  for (let isDescription = true; ; isDescription = false) {
    const rest = content.subarray(position);
    const end = endOfTerminated(rest, width);
    if (end === null) return true;
    if (!isText(rest.subarray(0, end - width), encoding)) return false;
    position += end + (isDescription ? 0 : 4);
    if (position > content.length) return false;
  }
}

function widthOf(encoding: number): number {
  return encoding === 1 || encoding === 2 ? 2 : 1;
}

/** Returns the position behind the first terminator, or null. */
function endOfTerminated(bytes: Buffer, width: number): number | null {
  for (let position = 0; position + width <= bytes.length; position += width) {
    if (bytes.readUIntBE(position, width) === 0) return position + width;
  }
  return null;
}

function splitTexts(bytes: Buffer, width: number): Buffer[] {
  const texts: Buffer[] = [];
  let rest = bytes;
  while (rest.length > 0) {
    const end = endOfTerminated(rest, width);
    texts.push(end === null ? rest : rest.subarray(0, end - width));
    rest = end === null ? Buffer.alloc(0) : rest.subarray(end);
  }
  return texts;
}

/** Tells whether bytes are text in an ID3 encoding: ISO 8859-1, UTF-16 with a byte order mark, UTF-16BE or UTF-8. */
function isText(bytes: Buffer, encoding: number): boolean {
  if (encoding === 0 || bytes.length === 0) return true;
  if (encoding === 3) return decodes(bytes, 'utf-8');
  if (bytes.length < 2) return false;
  // C2PA readers skip the two bytes of the mark whatever they are, and ignore half a code unit at the end.
  const start = encoding === 1 ? 2 : 0;
  const units = bytes.subarray(start, bytes.length - (bytes.length % 2));
  const isLittleEndian = encoding === 1 && bytes.readUInt16BE(0) === 0xfffe;
  return decodes(units, isLittleEndian ? 'utf-16le' : 'utf-16be');
}

function decodes(bytes: Buffer, label: string): boolean {
  try {
    new TextDecoder(label, { fatal: true }).decode(bytes);
    return true;
  } catch {
    // The decoder throws a TypeError for bytes that are not valid in this encoding.
    return false;
  }
}

/** Reason why C2PA readers cannot decode a frame. */
export type Unreadable = 'encryption' | 'grouping' | 'compression' | 'contents that do not fit its kind';

/** Returns the reason why C2PA readers cannot decode a frame, or null where they can. */
export async function unreadabilityOf(
  context: FrameContext,
  frame: Id3Frame,
  isNested = false,
): Promise<Unreadable | null> {
  if (frame.isEncrypted) return 'encryption';
  if (frame.isGrouped) return 'grouping';
  if (frame.isCompressed) return 'compression';
  return (await areContentsReadable(context, frame, isNested)) ? null : 'contents that do not fit its kind';
}

async function areContentsReadable(context: FrameContext, frame: Id3Frame, isNested: boolean): Promise<boolean> {
  const { body, version } = context;
  if (LOOKUP_TABLE_IDS.includes(frame.id)) return false;
  const dataLengthSizeBytes = frame.hasDataLength ? 4 : 0;
  const start = frame.position + frameHeaderSizeBytes(version) + dataLengthSizeBytes;
  const sizeBytes = frame.sizeBytes - dataLengthSizeBytes;
  if (sizeBytes < 0) return false;
  // Copied, because nested frames are read through the same window.
  const stored = Buffer.from(await body.read(start, Math.min(sizeBytes, MAX_DECODED_SIZE_BYTES)));
  if (NESTING_IDS.includes(frame.id)) {
    if (isNested || frame.isUnsynchronised) return false;
    const prefixSizeBytes = frame.id === 'CHAP' ? prefixOfChapter(stored) : prefixOfContents(stored);
    return prefixSizeBytes !== null && areNestedReadable(context, start + prefixSizeBytes, start + sizeBytes);
  }
  const content = frame.isUnsynchronised ? undoUnsynchronisation(stored) : stored;
  return fitsGrammar(frame.id, { content, isWhole: stored.length === sizeBytes, hasSeveralValues: version === 4 });
}

/**
 * Returns the size of element id, two times and two offsets of 4 bytes each, or null (ID3v2 Chapter
 * Frame Addendum, §3.1).
 */
function prefixOfChapter(content: Buffer): number | null {
  const elementIdEnd = endOfTerminated(content, 1);
  const end = (elementIdEnd ?? Number.POSITIVE_INFINITY) + 4 * 4;
  return end <= content.length ? end : null;
}

/**
 * Returns the size of element id, flags and a counted list of element ids, or null (ID3v2 Chapter
 * Frame Addendum, §3.2).
 */
function prefixOfContents(content: Buffer): number | null {
  const elementIdEnd = endOfTerminated(content, 1);
  if (elementIdEnd === null || elementIdEnd + 2 > content.length) return null;
  let end = elementIdEnd + 2;
  for (let left = content.readUInt8(elementIdEnd + 1); left > 0; left--) {
    const size = endOfTerminated(content.subarray(end), 1);
    if (size === null) return null;
    end += size;
  }
  return end;
}

async function areNestedReadable(context: FrameContext, start: number, end: number): Promise<boolean> {
  const nested: FrameContext = { ...context, body: { ...context.body, sizeBytes: end } };
  const walk = await readFrames(nested, start);
  // Fewer bytes than a header are not taken for a frame.
  if (walk.rest === 'junk' && end - walk.end >= frameHeaderSizeBytes(context.version)) return false;
  for (const frame of walk.frames) {
    const isRefused = frame.sizeBytes === 0 || frame.repairedHeader !== null;
    if (isRefused || (await unreadabilityOf(nested, frame, true)) !== null) return false;
  }
  return true;
}
