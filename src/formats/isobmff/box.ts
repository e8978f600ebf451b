import { AppError } from '#errors/app-error.ts';

/** Size and type, 32 bits each. */
export const BOX_HEADER_SIZE_BYTES = 8;
/** Size 1, type, and the size in 64 bits (ISO/IEC 14496-12 §4.2.2). */
export const LONGEST_BOX_HEADER_BYTES = 16;
/** Bound of the boxes directly inside one box; files in the wild hold a few hundred at most. */
const MAX_CHILD_BOXES = 65_536;

/** A box as its header says it is. Offsets count from the start of the file, sizes include the header, in bytes. */
export interface BoxHeader {
  /** The 4CC. */
  readonly type: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly headerSizeBytes: number;
  /** How the size is written: in 32 bits, in 64 bits, or as 0, which means up to the end of what holds the box. */
  readonly sizeForm: 'compact' | 'large' | 'to-end';
}

/** What holds a box: the file, or another box. */
export interface BoxParent {
  readonly fileName: string;
  /** `file`, or the type of the box. */
  readonly type: string;
  /** Where it ends, from the start of the file. */
  readonly endOffset: number;
}

/**
 * Reads the header at the start of `bytes`, at least 8 bytes of a box that stands at `offset`; as many as
 * `LONGEST_BOX_HEADER_BYTES` where the parent goes on so far. What it says may be impossible: see `requireFit`.
 */
export function parseBoxHeader(bytes: Buffer, offset: number, parentEndOffset: number): BoxHeader {
  const type = bytes.toString('latin1', 4, 8);
  const size = bytes.readUInt32BE(0);
  if (size === 0) {
    const sizeBytes = parentEndOffset - offset;
    return { type, offset, sizeBytes, headerSizeBytes: BOX_HEADER_SIZE_BYTES, sizeForm: 'to-end' };
  }
  if (size !== 1) return { type, offset, sizeBytes: size, headerSizeBytes: BOX_HEADER_SIZE_BYTES, sizeForm: 'compact' };
  const largeSize = bytes.length < LONGEST_BOX_HEADER_BYTES ? 0n : bytes.readBigUInt64BE(8);
  // Sizes past the safe integers become inexact here, but no file reaches so far, and so they are refused in any case.
  const sizeBytes = Number(largeSize);
  return { type, offset, sizeBytes, headerSizeBytes: LONGEST_BOX_HEADER_BYTES, sizeForm: 'large' };
}

/** Whether a box has a size that is possible where it stands. */
export function fitsInto({ offset, sizeBytes, headerSizeBytes }: BoxHeader, parentEndOffset: number): boolean {
  return sizeBytes >= headerSizeBytes && offset + sizeBytes <= parentEndOffset;
}

/** Throws for a box whose size cannot be, with its type and offset. */
export function requireFit(header: BoxHeader, parent: BoxParent): void {
  if (fitsInto(header, parent.endOffset)) return;
  const { offset, sizeBytes } = header;
  const box = { name: parent.fileName, boxType: shownType(header.type), offset, sizeBytes };
  if (sizeBytes < header.headerSizeBytes) throw new AppError('BMFF_BOX_SIZE_INVALID', box);
  throw new AppError('BMFF_BOX_EXCEEDS_PARENT', { ...box, parent: parent.type, parentEndOffset: parent.endOffset });
}

/** A 4CC for people: as text where it is text, else in hexadecimal. */
export function shownType(type: string): string {
  return /^[\x20-\x7e]{4}$/.test(type) ? type : `0x${Buffer.from(type, 'latin1').toString('hex')}`;
}

/** A whole box in memory. */
export class Box {
  readonly fileName: string;
  readonly header: BoxHeader;
  /** The box from its header to its end. */
  readonly bytes: Buffer;
  /** The box around it, unless it stands directly in the file. */
  readonly parent: Box | null;

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

  /** Headers of the boxes around it, the innermost first. */
  get ancestors(): readonly BoxHeader[] {
    return this.parent === null ? [] : [this.parent.header, ...this.parent.ancestors];
  }

  /**
   * The boxes directly inside, from `skipBytes` behind the header on. Fewer than 8 bytes at the end, or a size of 0 (the
   * terminator of QuickTime's lists), end them. Throws for a child that does not fit.
   */
  *children(skipBytes = 0): Generator<Box> {
    let position = this.header.headerSizeBytes + skipBytes;
    for (let count = 0; position + BOX_HEADER_SIZE_BYTES <= this.bytes.length; count += 1) {
      const header = parseBoxHeader(this.bytes.subarray(position), this.header.offset + position, this.endOffset);
      if (header.sizeForm === 'to-end') return;
      requireFit(header, this);
      if (count === MAX_CHILD_BOXES) {
        throw new AppError('BMFF_TOO_MANY_BOXES', { name: this.fileName, offset: header.offset, maxBoxes: count });
      }
      yield new Box(this.fileName, header, this.bytes.subarray(position, position + header.sizeBytes), this);
      position += header.sizeBytes;
    }
  }

  /** Every box that is reached by going down the given types: `moov.descendants('trak', 'mdia')`. */
  *descendants(...path: readonly string[]): Generator<Box> {
    const [type, ...rest] = path;
    for (const child of this.children()) {
      if (child.type !== type) continue;
      if (rest.length === 0) yield child;
      else yield* child.descendants(...rest);
    }
  }

  /** The first box that is reached by going down the given types. */
  descendant(...path: readonly string[]): Box | undefined {
    return this.descendants(...path).next().value ?? undefined;
  }
}
