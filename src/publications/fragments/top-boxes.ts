import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  Box,
  type BoxHeader,
  C2PA_BOX_HEAD_BYTES,
  C2PA_BOX_ID,
  isSearchedType,
  MAX_BOX_HEADER_SIZE_BYTES,
  parseBoxHeader,
  parseC2paBox,
  printableType,
  requireFit,
  type StraySamples,
  strayTableOfPart,
} from '#formats/isobmff-boxes.ts';
import { isUnsupportedContainer } from '#formats/unsupported-containers.ts';
import { type ByteRange, type MediaPart, rangeOf } from '../media-part.ts';

/** A box directly in a file, as it lies there; up to seven bytes after the last box make one of type '' without header. */
export interface TopBox extends Pick<BoxHeader, 'type' | 'offset' | 'sizeBytes' | 'headerSizeBytes'> {
  /** The first bytes of the box, header included, at most `BOX_HEAD_SIZE_BYTES`. */
  readonly head: Buffer;
}

/** Enough of a box to see its header and what kind of C2PA box it is. */
const BOX_HEAD_SIZE_BYTES = MAX_BOX_HEADER_SIZE_BYTES + C2PA_BOX_HEAD_BYTES;
/** Boxes at the top level of one fragment or init segment; events (emsg) may be many. */
const MAX_TOP_BOXES = 4_096;
/** Size of the first read, so that small fragments are read once. */
const FIRST_READ_BYTES = 16 * 1024;

/** Reads bytes of one file near its start from memory, and all else from the file. */
export interface PartReader {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** True when the part is a byte range of a larger file. */
  readonly isRange: boolean;
  read(offset: number, length: number): Promise<Buffer>;
}

/** Makes a reader of one part of an open file, with the part's first bytes prefetched. */
export async function readerOf(source: ByteSource, part: MediaPart, signal: AbortSignal): Promise<PartReader> {
  const { offset: start, length } = rangeOf(part, source);
  const ahead = memoryReaderOf(await readRange(source, start, Math.min(FIRST_READ_BYTES, length), signal), part);
  return {
    ...ahead,
    end: start + length,
    read: (offset, length) =>
      offset + length <= ahead.end ? ahead.read(offset, length) : readRange(source, offset, length, signal),
  };
}

/** Returns true for a part that begins as a container other than MP4, such as WebM. */
export async function beginsOtherContainer({ start, end, read }: PartReader): Promise<boolean> {
  return isUnsupportedContainer(await read(start, Math.min(BOX_HEADER_SIZE_BYTES, end - start)));
}

/** Makes a reader of a part that is in memory. */
export function memoryReaderOf(bytes: Buffer, part: MediaPart): PartReader {
  const start = part.range?.offset ?? 0;
  return {
    name: part.path,
    isRange: part.range !== null,
    start,
    end: start + bytes.length,
    read: async (offset, length) => bytes.subarray(offset - start, offset - start + length),
  };
}

/** Lists the boxes of a part, of which it may have `maxBoxes`. Throws `FRAGMENT_MALFORMED` or the error of the box that does not fit. */
export async function listTopBoxes(reader: PartReader, maxBoxes = MAX_TOP_BOXES): Promise<TopBox[]> {
  const boxes: TopBox[] = [];
  let offset = reader.start;
  while (offset < reader.end) {
    const box = await readTopBox(reader, offset);
    if (boxes.length === maxBoxes) throw malformed(reader, box, `it has more than ${maxBoxes} boxes`);
    boxes.push(box);
    offset += box.sizeBytes;
  }
  return boxes;
}

async function readTopBox(reader: PartReader, offset: number): Promise<TopBox> {
  const available = reader.end - offset;
  const head = await reader.read(offset, Math.min(BOX_HEAD_SIZE_BYTES, available));
  // Up to seven bytes after the last box are no box, and are hashed as they are (c2pa.hash.bmff.v3).
  if (available < BOX_HEADER_SIZE_BYTES) return { type: '', offset, sizeBytes: available, headerSizeBytes: 0, head };
  const header = parseBoxHeader(head, offset, reader.end);
  requireFit(header, { fileName: reader.name, type: 'file', endOffset: reader.end });
  return { ...header, head: head.subarray(0, header.sizeBytes) };
}

export function malformed(
  reader: Pick<PartReader, 'name'>,
  box: Pick<TopBox, 'type' | 'offset'>,
  problem: string,
): AppError {
  return new AppError('FRAGMENT_MALFORMED', { file: reader.name, boxType: box.type, offset: box.offset, problem });
}

/** Reads a box with its children into memory. Throws `FRAGMENT_MALFORMED` when it has more than `maxSizeBytes`. */
export async function readBox(reader: PartReader, box: TopBox, maxSizeBytes: number): Promise<Box> {
  if (box.sizeBytes > maxSizeBytes) throw malformed(reader, box, `it is larger than ${maxSizeBytes} bytes`);
  return new Box(reader.name, { ...box, sizeForm: 'compact' }, await reader.read(box.offset, box.sizeBytes));
}

/**
 * Refuses boxes beside the media that lead players to samples elsewhere than at their place. Returns those boxes, each of at most
 * `maxSizeBytes`. Throws `FRAGMENT_MALFORMED`.
 */
export async function refuseStrayTables(
  reader: PartReader,
  boxes: readonly TopBox[],
  maxSizeBytes: number,
): Promise<Box[]> {
  const searched: Box[] = [];
  for (const box of boxes) if (isSearchedType(box.type)) searched.push(await readBox(reader, box, maxSizeBytes));
  refuseStray(reader, strayTableOfPart(searched));
  return searched;
}

/** Throws `FRAGMENT_MALFORMED` for samples that players find elsewhere than in the media of a part. */
export function refuseStray(reader: Pick<PartReader, 'name'>, stray: StraySamples | null): void {
  if (stray !== null) throw malformed(reader, { ...stray, type: printableType(stray.type) }, stray.problem);
}

/** Returns true for a C2PA box of any purpose. */
export function isC2paBox(box: TopBox): boolean {
  return box.type === 'uuid' && fromId(box).subarray(0, C2PA_BOX_ID.length).equals(C2PA_BOX_ID);
}

/** Returns the byte range of the manifest store inside a manifest box; null for a box of another purpose. */
export function manifestIn(box: TopBox): ByteRange | null {
  const parsed = parseC2paBox(fromId(box));
  if (parsed?.purpose !== 'manifest') return null;
  const start = box.headerSizeBytes + parsed.payloadStart;
  return start < box.sizeBytes ? { offset: box.offset + start, length: box.sizeBytes - start } : null;
}

/** Returns the beginning of a uuid box from its extended type on. */
function fromId({ head, headerSizeBytes }: TopBox): Buffer {
  return head.subarray(headerSizeBytes, headerSizeBytes + C2PA_BOX_HEAD_BYTES);
}
