import { frameHeaderSizeBytes, type Id3Frame } from './frames.ts';
import type { TagBody } from './tag-body.ts';
import type { Id3Version } from './tag-header.ts';
import { undoUnsynchronisation } from './unsynchronisation.ts';

/**
 * Readers of C2PA decode every frame of a tag, and give up the whole tag, with the manifest in it, at the first one
 * they cannot decode. What is said here about a frame errs on the side of "no".
 */

/** How much of a frame's content is decoded; what is longer is judged by its start. */
const MAX_DECODED_SIZE_BYTES = 64 * 1024;

/** Why readers of C2PA cannot decode a frame. */
export type Unreadable = 'encryption' | 'grouping' | 'compression' | 'contents that do not fit its kind';

/**
 * A part of a frame's content: a text encoding byte, a text in that encoding or in ISO 8859-1 that ends with zeros, a
 * text or a URL up to the end of the frame, or a count of any bytes. What follows the last part may be anything.
 */
type Part = 'encoding' | 'text' | 'latin1' | 'last text' | 'last url' | 'picture format' | 1 | 3;

/** The parts of the frames that are decoded, by id without what sets v2.2 apart (v2.4.0 frames, §4). */
const PARTS_BY_ID: Readonly<Record<string, readonly Part[]>> = {
  TXXX: ['encoding', 'text', 'last text'],
  TXX: ['encoding', 'text', 'last text'],
  WXXX: ['encoding', 'text'],
  WXX: ['encoding', 'text'],
  COMM: ['encoding', 3, 'text', 'last text'],
  COM: ['encoding', 3, 'text', 'last text'],
  USLT: ['encoding', 3, 'text', 'last text'],
  ULT: ['encoding', 3, 'text', 'last text'],
  IPLS: ['encoding', 'last text'],
  IPL: ['encoding', 'last text'],
  GRP1: ['encoding', 'last text'],
  APIC: ['encoding', 'latin1', 1, 'text'],
  PIC: ['encoding', 'picture format', 1, 'text'],
  GEOB: ['encoding', 'latin1', 'text', 'text'],
  GEO: ['encoding', 'latin1', 'text', 'text'],
  POPM: ['latin1', 1],
  POP: ['latin1', 1],
  PRIV: ['latin1'],
  UFID: ['latin1'],
};

/** Why readers of C2PA cannot decode a frame, or null where they can. */
export async function unreadabilityOf(
  body: TagBody,
  version: Id3Version,
  frame: Id3Frame,
): Promise<Unreadable | null> {
  if (frame.isEncrypted) return 'encryption';
  if (frame.isGrouped) return 'grouping';
  if (frame.isCompressed) return 'compression';
  const parts = partsOf(frame.id);
  if (parts === null) return null;
  const start = frame.position + frameHeaderSizeBytes(version) + (frame.hasDataLength ? 4 : 0);
  const sizeBytes = Math.max(0, frame.sizeBytes - (frame.hasDataLength ? 4 : 0));
  const stored = await body.read(start, Math.min(sizeBytes, MAX_DECODED_SIZE_BYTES));
  const content = frame.isUnsynchronised ? undoUnsynchronisation(stored) : stored;
  const isWhole = stored.length === sizeBytes;
  return canDecode(parts, { content, version, isWhole }) ? null : 'contents that do not fit its kind';
}

function partsOf(id: string): readonly Part[] | null {
  const parts = PARTS_BY_ID[id];
  if (parts !== undefined) return parts;
  if (id.startsWith('T')) return ['encoding', 'last text'];
  return id.startsWith('W') ? ['last url'] : null;
}

interface FrameContent {
  readonly content: Buffer;
  readonly version: Id3Version;
  /** False where only the start of the content is at hand. */
  readonly isWhole: boolean;
}

function canDecode(parts: readonly Part[], { content, version, isWhole }: FrameContent): boolean {
  let encoding = 0;
  let position = 0;
  for (const part of parts) {
    const rest = content.subarray(position);
    const end = endOfPart(part, rest, encoding);
    if (end === null) return false;
    if (part === 'encoding') encoding = rest[0] ?? 0;
    if (part === 'text' && !isText(rest.subarray(0, end - widthOf(encoding)), encoding)) return false;
    if (part === 'last url' && isWhole && !isText(rest, 3)) return false;
    if (part === 'last text' && isWhole && !isText(lastText(rest, encoding, version), encoding)) return false;
    position += end;
  }
  return true;
}

/** Length of a part at the start of `rest`, its terminator included, or null where it is not there. */
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
    case 'last url':
      return rest.length;
    default:
      return rest.length >= part ? part : null;
  }
}

/** Before v2.4 a text ends at its first terminator, since when it may hold several values. */
function lastText(rest: Buffer, encoding: number, version: Id3Version): Buffer {
  const width = widthOf(encoding);
  const end = version === 4 ? null : endOfTerminated(rest, width);
  return end === null ? rest : rest.subarray(0, end - width);
}

function widthOf(encoding: number): number {
  return encoding === 1 || encoding === 2 ? 2 : 1;
}

function endOfTerminated(bytes: Buffer, width: number): number | null {
  for (let position = 0; position + width <= bytes.length; position += width) {
    if (bytes.readUIntBE(position, width) === 0) return position + width;
  }
  return null;
}

/** Whether bytes are text in one of ID3's encodings: ISO 8859-1, UTF-16 with a byte order mark, UTF-16BE, UTF-8. */
function isText(bytes: Buffer, encoding: number): boolean {
  if (encoding === 0 || bytes.length === 0) return true;
  if (encoding === 3) return decodes(bytes, 'utf-8');
  if (bytes.length < 2) return false;
  const units = bytes.subarray(0, bytes.length - (bytes.length % 2));
  const isLittleEndian = encoding === 1 && bytes.readUInt16BE(0) === 0xfffe;
  return decodes(units, isLittleEndian ? 'utf-16le' : 'utf-16be');
}

function decodes(bytes: Buffer, label: string): boolean {
  try {
    new TextDecoder(label, { fatal: true }).decode(bytes);
    return true;
  } catch {
    // A TypeError says that the bytes are no text in this encoding: the very thing that was asked.
    return false;
  }
}
