import assert from 'node:assert/strict';
import type { ByteSource, ReadWindow } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';

/** Header of a box: size and type, 32 bits each (ISO/IEC 14496-12 §4.2.2). */
export const BOX_HEADER_SIZE_BYTES = 8;
/** Header of a box with a 64-bit size: 1, the type, and the size. */
export const MAX_BOX_HEADER_SIZE_BYTES = 16;
/** Largest size that a field of 32 bits states. */
const MAX_COMPACT_SIZE_BYTES = 0xffff_ffff;
/** Largest number of children of one box; real files have a few hundred at most. */
const MAX_CHILD_BOXES = 65_536;

/** Header of a box. Offsets count from the start of the file, sizes include the header; both in bytes. */
export interface BoxHeader {
  /** The 4CC. */
  readonly type: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly headerSizeBytes: number;
  /** Form of the size field: 32 bits, 64 bits, or 0, which means up to the end of the parent. */
  readonly sizeForm: 'compact' | 'large' | 'to-end';
}

/** Parent of a box: the file, or another box. */
interface BoxParent {
  readonly fileName: string;
  /** `file`, or the type of the box. */
  readonly type: string;
  /** End of the parent, counted from the start of the file. */
  readonly endOffset: number;
}

/** Complete box in memory. */
export class Box {
  readonly fileName: string;
  readonly header: BoxHeader;
  /** The complete box, header included. */
  readonly bytes: Buffer;
  /** The box that contains it; null for a top-level box. */
  readonly parent: Box | null;

  /** All children; null until they were read. */
  #children: readonly Box[] | null = null;

  constructor(fileName: string, header: BoxHeader, bytes: Buffer, parent: Box | null = null) {
    this.fileName = fileName;
    this.header = header;
    this.bytes = bytes;
    this.parent = parent;
  }

  get type(): string {
    return this.header.type;
  }

  get endOffset(): number {
    return this.header.offset + this.header.sizeBytes;
  }

  /** Headers of the boxes that contain it, innermost first. */
  get ancestors(): readonly BoxHeader[] {
    return this.parent === null ? [] : [this.parent.header, ...this.parent.ancestors];
  }

  /**
   * Returns the children, of which the first starts `skipBytes` behind the header. Stops at fewer than 8 remaining bytes
   * or at a size of 0 (the terminator of a QuickTime list). Throws `BMFF_BOX_SIZE_INVALID`, `BMFF_BOX_EXCEEDS_PARENT`
   * or `BMFF_TOO_MANY_BOXES`.
   */
  children(skipBytes = 0): Iterable<Box> {
    return (skipBytes === 0 ? this.#children : null) ?? this.#readChildren(skipBytes);
  }

  *#readChildren(skipBytes: number): Generator<Box> {
    const children: Box[] = [];
    for (const header of boxHeadersIn(this.bytes, this.header.headerSizeBytes + skipBytes, this.header.offset)) {
      if (header.sizeForm === 'to-end') return;
      requireFit(header, this);
      if (children.length === MAX_CHILD_BOXES) {
        const details = { name: this.fileName, offset: header.offset, maxBoxes: MAX_CHILD_BOXES };
        throw new AppError('BMFF_TOO_MANY_BOXES', details);
      }
      const start = header.offset - this.header.offset;
      const child = new Box(this.fileName, header, this.bytes.subarray(start, start + header.sizeBytes), this);
      children.push(child);
      yield child;
    }
    if (skipBytes === 0) this.#children = children;
  }

  /**
   * Yields every box at the path of types given, such as `moov.descendants('trak', 'mdia')`. Throws as `children` does.
   */
  *descendants(...path: readonly string[]): Generator<Box> {
    const [type, ...rest] = path;
    for (const child of this.children()) {
      if (child.type !== type) continue;
      if (rest.length === 0) yield child;
      else yield* child.descendants(...rest);
    }
  }

  /** Returns the first box at the path of types given. Throws as `children` does. */
  descendant(...path: readonly string[]): Box | undefined {
    return this.descendants(...path).next().value ?? undefined;
  }
}

/** Sequential reader of a box's fields. Throws `BMFF_BOX_MALFORMED` where the box ends before a field does. */
export class BoxFields {
  readonly #box: Box;
  /** Position of the next field, counted from the start of the box. */
  position: number;

  constructor(box: Box) {
    this.#box = box;
    this.position = box.header.headerSizeBytes;
  }

  /** Position of the next field, counted from the start of the file. */
  get offset(): number {
    return this.#box.header.offset + this.position;
  }

  skip(lengthBytes: number): void {
    this.#require(lengthBytes);
    this.position += lengthBytes;
  }

  /**
   * Reads an unsigned integer of 0 to 8 bytes. Values above 2^53 become inexact; no offset or size of a file
   * is that large.
   */
  uint(widthBytes: number): number {
    if (widthBytes > 4) return this.uint(widthBytes - 4) * 2 ** 32 + this.uint(4);
    const start = this.position;
    this.skip(widthBytes);
    return widthBytes === 0 ? 0 : this.#box.bytes.readUIntBE(start, widthBytes);
  }

  int32(): number {
    return this.uint(4) | 0;
  }

  /** Reads the version and flags at the start of a full box (ISO/IEC 14496-12 §4.2.2). */
  versionAndFlags(): { readonly version: number; readonly flags: number } {
    return { version: this.uint(1), flags: this.uint(3) };
  }

  text(lengthBytes: number): string {
    const start = this.position;
    this.skip(lengthBytes);
    return this.#box.bytes.toString('latin1', start, this.position);
  }

  /** Returns a view of the next bytes, not a copy. */
  bytes(lengthBytes: number): Buffer {
    const start = this.position;
    this.skip(lengthBytes);
    return this.#box.bytes.subarray(start, this.position);
  }

  #require(lengthBytes: number): void {
    if (this.position + lengthBytes <= this.#box.bytes.length) return;
    const { fileName, header, bytes } = this.#box;
    throw new AppError('BMFF_BOX_MALFORMED', {
      name: fileName,
      boxType: printableType(header.type),
      offset: header.offset,
      problem: `its fields need ${lengthBytes} bytes at byte ${this.position} of the box, which has ${bytes.length}`,
    });
  }
}

/**
 * Parses the header at position `at` of `bytes`, where at least 8 bytes of the box at `offset` stand, and `MAX_BOX_HEADER_SIZE_BYTES`
 * where the parent is that long. The size is not checked: see `requireFit`.
 */
export function parseBoxHeader(bytes: Buffer, offset: number, parentEndOffset: number, at = 0): BoxHeader {
  const type = bytes.toString('latin1', at + 4, at + 8);
  const size = bytes.readUInt32BE(at);
  if (size === 0) {
    const sizeBytes = parentEndOffset - offset;
    return { type, offset, sizeBytes, headerSizeBytes: BOX_HEADER_SIZE_BYTES, sizeForm: 'to-end' };
  }
  if (size !== 1) return { type, offset, sizeBytes: size, headerSizeBytes: BOX_HEADER_SIZE_BYTES, sizeForm: 'compact' };
  const largeSize = bytes.length - at < MAX_BOX_HEADER_SIZE_BYTES ? 0n : bytes.readBigUInt64BE(at + 8);
  // A size beyond the safe integers becomes inexact. No file is that large, so `requireFit` refuses it in any case.
  const sizeBytes = Number(largeSize);
  return { type, offset, sizeBytes, headerSizeBytes: MAX_BOX_HEADER_SIZE_BYTES, sizeForm: 'large' };
}

/** Returns the header of a box of `sizeBytes`, header included: one of 64 bits where 32 cannot state the size. */
export function makeBoxHeader(type: string, sizeBytes: number): Buffer {
  const isLarge = sizeBytes > MAX_COMPACT_SIZE_BYTES;
  const header = Buffer.alloc(isLarge ? MAX_BOX_HEADER_SIZE_BYTES : BOX_HEADER_SIZE_BYTES);
  header.writeUInt32BE(isLarge ? 1 : sizeBytes, 0);
  header.write(type, 4, 'latin1');
  if (isLarge) header.writeBigUInt64BE(BigInt(sizeBytes), BOX_HEADER_SIZE_BYTES);
  return header;
}

/**
 * Yields the headers of consecutive boxes in memory, from `start` to the last with 8 bytes. `bytes` begin at `offset` of the
 * file. The last header may have an impossible size.
 */
export function* boxHeadersIn(bytes: Buffer, start = 0, offset = 0): Generator<BoxHeader> {
  for (let at = start; at + BOX_HEADER_SIZE_BYTES <= bytes.length; ) {
    const header = parseBoxHeader(bytes, offset + at, offset + bytes.length, at);
    yield header;
    if (header.sizeBytes < header.headerSizeBytes) return;
    at += header.sizeBytes;
  }
}

/** Tells whether the size of a box is possible at its position. */
export function fitsInto({ offset, sizeBytes, headerSizeBytes }: BoxHeader, parentEndOffset: number): boolean {
  return sizeBytes >= headerSizeBytes && offset + sizeBytes <= parentEndOffset;
}

/** Throws `BMFF_BOX_SIZE_INVALID` or `BMFF_BOX_EXCEEDS_PARENT` for a box whose size is impossible at its position. */
export function requireFit(header: BoxHeader, parent: BoxParent): void {
  if (fitsInto(header, parent.endOffset)) return;
  const { offset, sizeBytes } = header;
  const box = { name: parent.fileName, boxType: printableType(header.type), offset, sizeBytes };
  if (sizeBytes < header.headerSizeBytes) throw new AppError('BMFF_BOX_SIZE_INVALID', box);
  throw new AppError('BMFF_BOX_EXCEEDS_PARENT', { ...box, parent: parent.type, parentEndOffset: parent.endOffset });
}

/**
 * Reads a box into memory. Its bytes are valid until the next read of the window. Throws `BMFF_BOX_TOO_LARGE`
 * before it reads.
 */
export async function readWholeBox(
  name: string,
  window: ReadWindow,
  header: BoxHeader,
  maxSizeBytes: number,
): Promise<Box> {
  const { type, offset, sizeBytes } = header;
  if (sizeBytes > maxSizeBytes) {
    throw new AppError('BMFF_BOX_TOO_LARGE', { name, boxType: printableType(type), offset, sizeBytes, maxSizeBytes });
  }
  return new Box(name, header, await window.read(offset, sizeBytes));
}

/** Returns a 4CC for messages: as text where it is printable ASCII, else in hexadecimal. */
export function printableType(type: string): string {
  return /^[\x20-\x7e]{4}$/.test(type) ? type : `0x${Buffer.from(type, 'latin1').toString('hex')}`;
}

/** Largest number of top-level boxes: some 100,000 fragments, or a day of low-latency streaming. */
const MAX_TOP_LEVEL_BOXES = 500_000;
/** Largest number of bytes behind the last box that count as appended data rather than as a damaged box. */
const MAX_TAIL_SIZE_BYTES = 1024 * 1024;

/** Bytes by which the last `mdat` box may exceed the file: some programs count its header or padding twice. More are missing. */
const MAX_MISSING_MEDIA_BYTES = 64;

/** Known types of top-level boxes. One of these that exceeds the file is truncated; another type is appended data. */
const KNOWN_TYPES = new Set(
  'ftyp styp moov mdat moof mfra uuid meta meco sidx ssix emsg prft pdin pnot PICT'.split(' '),
);

/** Box directly in the file. */
export interface TopLevelBox extends BoxHeader {
  /** Extended type of a `uuid` box in hexadecimal; null for other boxes. */
  readonly boxId: string | null;
  /** Size in the header where it exceeds the file; `sizeBytes` then ends with the file. */
  readonly overstatedBytes?: number;
}

/** Top level of a file. */
export interface TopLevelBoxes {
  readonly boxes: readonly TopLevelBox[];
  /** Bytes behind the last box that are not a box; usually of length 0. */
  readonly tail: { readonly offset: number; readonly length: number };
  /** True where the tail begins with a box that is smaller than its header: readers and players find different boxes behind it. */
  readonly isBroken: boolean;
}

/**
 * Walks the top-level boxes in file order and calls `visit` with each. Throws `BMFF_BOX_SIZE_INVALID`,
 * `BMFF_BOX_EXCEEDS_PARENT` or `BMFF_TOO_MANY_BOXES`; with `acceptsBroken`, ends at a box that is smaller than its header.
 */
export async function walkTopLevelBoxes(
  source: ByteSource,
  window: ReadWindow,
  visit: (box: TopLevelBox) => Promise<void> | undefined,
  acceptsBroken = false,
): Promise<TopLevelBoxes> {
  const file = { fileName: source.name, type: 'file', endOffset: source.sizeBytes };
  const boxes: TopLevelBox[] = [];
  const seen = new Set<string>();
  let [offset, isBroken] = [0, false];
  // Up to 7 bytes cannot be a box; C2PA readers hash them as they are.
  while (offset + BOX_HEADER_SIZE_BYTES <= source.sizeBytes) {
    const headSizeBytes = Math.min(MAX_BOX_HEADER_SIZE_BYTES + BOX_ID_SIZE_BYTES, source.sizeBytes - offset);
    const head = window.buffered(offset, headSizeBytes) ?? (await window.read(offset, headSizeBytes));
    const box = withinFile(parseFileBox(head, offset, source.sizeBytes), source, seen);
    isBroken = box.sizeBytes < box.headerSizeBytes;
    if ((isBroken && acceptsBroken) || (!fitsInto(box, source.sizeBytes) && isTail(box, source, seen))) break;
    requireFit(box, file);
    if (boxes.length === MAX_TOP_LEVEL_BOXES) {
      throw new AppError('BMFF_TOO_MANY_BOXES', { name: source.name, offset, maxBoxes: MAX_TOP_LEVEL_BOXES });
    }
    boxes.push(box);
    seen.add(box.type);
    const visiting = visit(box);
    if (visiting !== undefined) await visiting;
    offset += box.sizeBytes;
  }
  return { boxes, tail: { offset, length: source.sizeBytes - offset }, isBroken };
}

function parseFileBox(head: Buffer, offset: number, fileSizeBytes: number): TopLevelBox {
  const header = parseBoxHeader(head, offset, fileSizeBytes);
  const idEnd = header.headerSizeBytes + BOX_ID_SIZE_BYTES;
  const hasId = header.type === 'uuid' && header.sizeBytes >= idEnd;
  return { ...header, boxId: hasId ? head.toString('hex', header.headerSizeBytes, idEnd) : null };
}

/** Ends a last `mdat` box that is a few bytes too long with the file, as players do. */
function withinFile(box: TopLevelBox, { sizeBytes }: ByteSource, seen: ReadonlySet<string>): TopLevelBox {
  const missingBytes = box.offset + box.sizeBytes - sizeBytes;
  const isTolerated = box.type === 'mdat' && seen.has('moov') && missingBytes <= MAX_MISSING_MEDIA_BYTES;
  if (missingBytes <= 0 || !isTolerated) return box;
  return { ...box, sizeBytes: box.sizeBytes - missingBytes, overstatedBytes: box.sizeBytes };
}

/**
 * Tells whether a box is data appended to a complete movie, which players ignore: an ID3v1 tag, truncated free space.
 */
function isTail(box: TopLevelBox, source: ByteSource, seen: ReadonlySet<string>): boolean {
  const isComplete = seen.has('moov') && (seen.has('mdat') || seen.has('moof'));
  return isComplete && !KNOWN_TYPES.has(box.type) && source.sizeBytes - box.offset <= MAX_TAIL_SIZE_BYTES;
}

/** The extended type of C2PA's boxes (C2PA 2.2, §A.5.1). */
export const C2PA_BOX_ID = Buffer.from('d8fec3d61b0e483c92975828877ec481', 'hex');
const C2PA_BOX_ID_TEXT = C2PA_BOX_ID.toString('hex');
/** Length of the extended type of a `uuid` box, in bytes (ISO/IEC 14496-12 §4.2.2). */
export const BOX_ID_SIZE_BYTES = 16;
const VERSION_AND_FLAGS_SIZE_BYTES = 4;
/** Field with the offset of the first auxiliary `uuid` box, 0 for none; only boxes with a manifest store have it. */
const MERKLE_OFFSET_SIZE_BYTES = 8;
/** Longest purpose with its terminating zero. */
const MAX_PURPOSE_SIZE_BYTES = 'manifest'.length + 1;

/** Purpose of a C2PA box: it holds a manifest store, or a fragment's position in a Merkle tree (C2PA 2.2, §A.5.1). */
export type C2paBoxPurpose = 'manifest' | 'original' | 'update' | 'merkle';

/** Number of bytes that `parseC2paBox` needs at most, counted from the extended type. */
export const C2PA_BOX_HEAD_BYTES =
  BOX_ID_SIZE_BYTES + VERSION_AND_FLAGS_SIZE_BYTES + MAX_PURPOSE_SIZE_BYTES + MERKLE_OFFSET_SIZE_BYTES;

/** Extended type, version and flags: nobody signs these, and readers may know no others than zeros. */
const C2PA_BOX_BEGINNING = Buffer.concat([C2PA_BOX_ID, Buffer.alloc(VERSION_AND_FLAGS_SIZE_BYTES)]);

/** Tells whether a box is a C2PA box of any purpose. */
export function isC2paBox({ boxId }: TopLevelBox): boolean {
  return boxId === C2PA_BOX_ID_TEXT;
}

/** Returns a complete C2PA box with a payload: a manifest store, or the CBOR of a Merkle box. */
export function c2paUuidBox(purpose: C2paBoxPurpose, payload: Uint8Array): Buffer {
  return Buffer.concat([c2paUuidBoxHead(purpose, payload.length), payload]);
}

/** Returns the bytes of a C2PA box that precede its payload. */
export function c2paUuidBoxHead(purpose: C2paBoxPurpose, payloadSizeBytes: number): Buffer {
  const rest = Buffer.concat([
    C2PA_BOX_BEGINNING,
    Buffer.from(`${purpose}\0`),
    Buffer.alloc(purpose === 'merkle' ? 0 : MERKLE_OFFSET_SIZE_BYTES),
  ]);
  const sizeBytes = BOX_HEADER_SIZE_BYTES + rest.length + payloadSizeBytes;
  // C2PA readers do not find a manifest in a box with a 64-bit header.
  assert(sizeBytes <= MAX_COMPACT_SIZE_BYTES, 'a manifest is smaller than 4 GiB');
  return Buffer.concat([makeBoxHeader('uuid', sizeBytes), rest]);
}

/**
 * Returns the purpose of a C2PA box and the position of its payload, counted from the extended type that `head`, at most
 * `C2PA_BOX_HEAD_BYTES` long, starts with. Returns undefined for another box, and for unknown versions, flags and purposes.
 */
export function parseC2paBox(head: Buffer): { purpose: C2paBoxPurpose; payloadStart: number } | undefined {
  const purposeStart = C2PA_BOX_BEGINNING.length;
  if (!head.subarray(0, purposeStart).equals(C2PA_BOX_BEGINNING)) return undefined;
  const purposeEnd = head.indexOf(0, purposeStart);
  const purpose = head.toString('latin1', purposeStart, purposeEnd);
  if (purposeEnd === -1 || !isPurpose(purpose)) return undefined;
  const payloadStart = purposeEnd + 1 + (purpose === 'merkle' ? 0 : MERKLE_OFFSET_SIZE_BYTES);
  return payloadStart <= head.length ? { purpose, payloadStart } : undefined;
}

function isPurpose(text: string): text is C2paBoxPurpose {
  return text === 'manifest' || text === 'original' || text === 'update' || text === 'merkle';
}
