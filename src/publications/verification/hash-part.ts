import { createHash, type Hash } from 'node:crypto';
import { bufferPool } from '#bytes/buffers.ts';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import {
  Box,
  fitsInto,
  isExcludedType,
  isOfItsType,
  isSearchedType,
  MAX_EXCLUDED_BOX_BYTES,
  type MediaRange,
  offsetMark,
  parseBoxHeader,
} from '#formats/isobmff-boxes.ts';
import type { ByteRange } from '../media-part.ts';
import { isExcluded, type StoredBinding } from './stored-binding.ts';

/** Options for hashing a part. */
export interface PartHashing extends Pick<StoredBinding, 'algorithm' | 'hashesOffsets' | 'exclusions'> {
  /** Limit on the bytes that are read of a C2PA box; a longer one is cut. */
  readonly c2paBoxMaxBytes: number;
  /** Types of boxes that `content` leaves out; absent where `content` is not asked for. */
  readonly uncopied?: readonly string[];
}

/** The digests of an init segment or a fragment, and its C2PA boxes. */
export interface HashedPart {
  /** The digest that a BMFF hash binds. */
  readonly digest: Buffer;
  /** SHA-256 of all top-level boxes but those of C2PA and those of `PartHashing.uncopied`; empty where not asked for. */
  readonly content: Buffer;
  /** The contents of its C2PA boxes by purpose, in order; the last of no purpose where there are too many. */
  readonly c2pa: readonly C2paContent[];
  /** The boxes in which players look for others: those beside the media. Offsets of all boxes count from the start of the file. */
  readonly boxes: readonly Box[];
  /** False where these are larger than `MAX_KEPT_BYTES` together, so that some are left out. */
  readonly areAllKept: boolean;
  /** Contents of its media boxes. */
  readonly media: readonly MediaRange[];
}

interface C2paContent {
  readonly purpose: string;
  readonly content: Buffer;
}

/** Size of one read in bytes. */
const READ_SIZE_BYTES = 1024 * 1024;
const C2PA_UUID = 'd8fec3d61b0e483c92975828877ec481';
/** A header with a size of 64 bits (ISO/IEC 14496-12 §4.2). */
const MAX_HEADER_BYTES = 16;
/** Extended type; and with it, version and flags. */
const C2PA_ID_BYTES = 16;
const C2PA_HEAD_BYTES = 20;
/** C2PA boxes of one part whose contents are kept; a part has one. */
const MAX_C2PA_BOXES = 4;
/** Boxes of one part that are kept, in bytes together; signing accepts no larger ones. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** Limit on the boxes of one part, the same as for signing. Bytes that follow count as one box. */
const MAX_TOP_BOXES = 4096;

/**
 * Hashes a part of a publication from its bytes alone, in constant memory: every top-level box that is not excluded, each
 * behind its offset. This shares no code with the way parts are signed, so that a mistake there does not repeat itself here.
 */
export async function hashPart(
  source: ByteSource,
  range: ByteRange | null,
  hashing: PartHashing,
  signal: AbortSignal,
): Promise<HashedPart> {
  const { offset, length } = range ?? { offset: 0, length: source.sizeBytes };
  const buffer = await bufferPool.acquire(Math.max(Math.min(READ_SIZE_BYTES, length), 1), signal);
  try {
    const part = { name: source.name, offset, length };
    const window = new SlidingWindow(source, part, buffer, signal);
    const hashed = await new PartHash(window, part, hashing).run();
    bufferPool.release(buffer);
    return hashed;
  } catch (error) {
    // A read that was given up may yet write into it.
    bufferPool.discard(buffer);
    throw error;
  }
}

/** A box by its header; what is none, such as up to seven bytes at the end, makes one of type '' without header. */
interface FoundBox {
  readonly type: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly headerSizeBytes: number;
}

class PartHash {
  readonly #window: SlidingWindow;
  readonly #sizeBytes: number;
  readonly #hashing: PartHashing;
  readonly #bound: Hash;
  readonly #content: Hash | null;
  readonly #c2pa: C2paContent[] = [];
  readonly #name: string;
  readonly #start: number;
  readonly #boxes: Box[] = [];
  readonly #media: MediaRange[] = [];
  #keptBytes = 0;
  /** The number of bytes at the start of a box that tell what it is, and that exclusions look at. */
  readonly #headBytes: number;

  constructor(window: SlidingWindow, part: ByteRange & { readonly name: string }, hashing: PartHashing) {
    this.#window = window;
    this.#name = part.name;
    this.#start = part.offset;
    this.#sizeBytes = part.length;
    this.#hashing = hashing;
    const ends = hashing.exclusions.flatMap(({ data }) => data.map(({ offset, value }) => offset + value.length));
    this.#headBytes = Math.max(MAX_HEADER_BYTES + C2PA_HEAD_BYTES, ...ends);
    this.#bound = createHash(hashing.algorithm);
    this.#content = hashing.uncopied === undefined ? null : createHash('sha256');
  }

  async run(): Promise<HashedPart> {
    let count = 0;
    for (let offset = 0; offset < this.#sizeBytes; ) {
      const headBytes = Math.min(this.#headBytes, this.#sizeBytes - offset);
      const head = this.#window.buffered(offset, headBytes) ?? (await this.#window.read(offset, headBytes));
      const box = boxAt(head, offset, this.#sizeBytes, ++count === MAX_TOP_BOXES);
      await this.#add(box, head);
      offset += box.sizeBytes;
    }
    const content = this.#content?.digest() ?? Buffer.alloc(0);
    return {
      digest: this.#bound.digest(),
      content,
      c2pa: this.#c2pa,
      boxes: this.#boxes,
      areAllKept: this.#keptBytes <= MAX_KEPT_BYTES,
      media: this.#media,
    };
  }

  async #add(box: FoundBox, head: Buffer): Promise<void> {
    const { type, offset, sizeBytes } = box;
    const hashing = this.#hashing;
    const isC2pa = isC2paBox(box, head);
    const isLeftOut = isExcluded(type, sizeBytes, head, hashing.exclusions);
    if (isC2pa) await this.#takeC2pa(box);
    if (isSearchedType(type)) await this.#keep(box);
    if (type === 'mdat') {
      const start = this.#start + offset;
      this.#media.push({ start: start + box.headerSizeBytes, end: start + sizeBytes });
    }
    // Nobody signed what a box holds that the hash leaves out: one that is misused counts as media.
    const isBound = !isLeftOut || (isExcludedType(type) && !(await this.#isFileType(box)));
    const content = isC2pa || hashing.uncopied?.includes(type) ? null : this.#content;
    if (!isBound && content === null) return;
    if (isBound && type !== '' && hashing.hashesOffsets) this.#bound.update(offsetMark(offset));
    for (let at = offset; at < offset + sizeBytes; ) {
      const left = offset + sizeBytes - at;
      const piece =
        this.#window.bufferedFrom(at, left) ?? (await this.#window.read(at, Math.min(left, READ_SIZE_BYTES)));
      if (isBound) this.#bound.update(piece);
      content?.update(piece);
      at += piece.length;
    }
  }

  async #keep({ offset, sizeBytes }: FoundBox): Promise<void> {
    this.#keptBytes += sizeBytes;
    if (this.#keptBytes > MAX_KEPT_BYTES) return;
    const bytes = Buffer.from(this.#window.buffered(offset, sizeBytes) ?? (await this.#window.read(offset, sizeBytes)));
    const at = this.#start + offset;
    this.#boxes.push(new Box(this.#name, parseBoxHeader(bytes, at, at + sizeBytes), bytes));
  }

  /** Tells whether a box that every hash leaves out is what writers put there: a file type at the start. */
  async #isFileType(box: FoundBox): Promise<boolean> {
    const { type, offset, sizeBytes, headerSizeBytes } = box;
    if (type !== 'ftyp' || offset > 0 || sizeBytes > MAX_EXCLUDED_BOX_BYTES) return false;
    return isOfItsType(box, await this.#window.read(offset + headerSizeBytes, sizeBytes - headerSizeBytes));
  }

  /** Keeps what a C2PA box holds, of whatever purpose. */
  async #takeC2pa({ offset, sizeBytes, headerSizeBytes }: FoundBox): Promise<void> {
    if (this.#c2pa.length === MAX_C2PA_BOXES) {
      this.#c2pa[MAX_C2PA_BOXES - 1] = { purpose: '', content: Buffer.alloc(0) };
      return;
    }
    const start = headerSizeBytes + C2PA_ID_BYTES;
    const length = Math.min(sizeBytes - start, this.#hashing.c2paBoxMaxBytes);
    this.#c2pa.push(readPurpose(await this.#window.read(offset + start, length)));
  }
}

/**
 * Returns the box at an offset by its first bytes. One that does not fit, and everything behind the last that is looked at, is
 * no box: its bytes are hashed whatever they say they are, so that no exclusion hides them. A size of zero means the end
 * of the file (ISO/IEC 14496-12 §4.2).
 */
function boxAt(head: Buffer, offset: number, endOffset: number, isLast: boolean): FoundBox {
  const left = endOffset - offset;
  const rest = { type: '', offset, sizeBytes: left, headerSizeBytes: 0 };
  if (left < 8) return rest;
  const box = parseBoxHeader(head, offset, endOffset);
  return fitsInto(box, endOffset) && (!isLast || box.sizeBytes === left) ? box : rest;
}

function isC2paBox({ type, sizeBytes, headerSizeBytes }: FoundBox, head: Buffer): boolean {
  if (type !== 'uuid' || sizeBytes < headerSizeBytes + C2PA_HEAD_BYTES) return false;
  return head.toString('hex', headerSizeBytes, headerSizeBytes + 16) === C2PA_UUID;
}

/** Reads a C2PA box from its version on. Nobody signs version and flags: with others than zeros, its purpose is unknown. */
function readPurpose(bytes: Buffer): C2paContent {
  const start = C2PA_HEAD_BYTES - C2PA_ID_BYTES;
  const end = bytes.indexOf(0, start);
  const isKnown = end !== -1 && bytes.readUInt32BE() === 0;
  return {
    purpose: isKnown ? bytes.toString('latin1', start, end) : '',
    content: Buffer.from(bytes.subarray(end + 1)),
  };
}

/**
 * Reads a range of a file ahead, so that small files and small boxes cost one read. Offsets count from the start of the
 * range. Returned bytes are valid until the next call.
 */
class SlidingWindow {
  readonly #source: ByteSource;
  readonly #range: ByteRange;
  readonly #buffer: Buffer;
  readonly #signal: AbortSignal;
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(source: ByteSource, range: ByteRange, buffer: Buffer, signal: AbortSignal) {
    this.#source = source;
    this.#range = range;
    this.#buffer = buffer;
    this.#signal = signal;
  }

  async read(offset: number, length: number): Promise<Buffer> {
    const buffered = this.buffered(offset, length);
    if (buffered !== null) return buffered;
    const start = this.#range.offset + offset;
    const aheadBytes = Math.max(length, Math.min(READ_SIZE_BYTES, this.#range.length - offset));
    // Only a large manifest is larger than the buffer.
    if (aheadBytes > this.#buffer.length) {
      this.#bytes = await readRange(this.#source, start, aheadBytes, this.#signal);
    } else {
      this.#bytes = this.#buffer.subarray(0, aheadBytes);
      await this.#source.read(this.#bytes, start, this.#signal);
    }
    this.#start = offset;
    return this.#bytes.subarray(0, length);
  }

  /** Returns the bytes if all of them were read ahead, else null: avoids an `await` for each box of a small part. */
  buffered(offset: number, length: number): Buffer | null {
    const start = offset - this.#start;
    return start >= 0 && start + length <= this.#bytes.length ? this.#bytes.subarray(start, start + length) : null;
  }

  /** Returns the bytes that were read ahead from an offset on, at most `maxLength`; null for none. */
  bufferedFrom(offset: number, maxLength: number): Buffer | null {
    const ahead = this.#start + this.#bytes.length - offset;
    return ahead > 0 ? this.buffered(offset, Math.min(ahead, maxLength)) : null;
  }
}
