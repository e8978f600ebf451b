import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import {
  BOX_HEADER_SIZE_BYTES,
  Box,
  type BoxHeader,
  LONGEST_BOX_HEADER_BYTES,
  parseBoxHeader,
  requireFit,
} from '#formats/isobmff/box.ts';
import { C2PA_BOX_HEAD_BYTES } from '#formats/isobmff/c2pa-box.ts';
import type { ByteRange, MediaPart } from '../publication.ts';

/** A box directly in a file, as it lies there; up to seven bytes after the last box make one of type '' without header. */
export interface TopBox extends Pick<BoxHeader, 'type' | 'offset' | 'sizeBytes' | 'headerSizeBytes'> {
  /** The first bytes of the box, header included, at most `BOX_HEAD_SIZE_BYTES`. */
  readonly head: Buffer;
}

/** Enough of a box to see its header and what kind of C2PA box it is. */
const BOX_HEAD_SIZE_BYTES = LONGEST_BOX_HEADER_BYTES + C2PA_BOX_HEAD_BYTES;
/** Boxes at the top level of one fragment or init segment; events (emsg) may be many. */
const TOP_BOXES_MAX_COUNT = 4_096;
/** The first read takes so much, so that small fragments are read once. */
const FIRST_READ_BYTES = 16 * 1024;

/** Reads bytes of one file near its start from memory, and all else from the file. */
export interface PartReader {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** Whether the part is a byte range of a larger file. */
  readonly isRange: boolean;
  read(offset: number, length: number): Promise<Buffer>;
}

/** A reader of one part of an opened file, with the part's beginning read ahead. */
export async function readerOf(source: ByteSource, part: MediaPart, signal: AbortSignal): Promise<PartReader> {
  const { offset: start, length } = rangeOf(part, source);
  const ahead = await readRange(source, start, Math.min(FIRST_READ_BYTES, length), signal);
  return {
    name: part.path,
    isRange: part.range !== null,
    start,
    end: start + length,
    read: async (offset, length) => {
      const from = offset - start;
      if (from + length <= ahead.length) return ahead.subarray(from, from + length);
      return await readRange(source, offset, length, signal);
    },
  };
}

/** A reader of one part whose bytes were read already. */
export function heldReaderOf(held: Buffer, part: MediaPart): PartReader {
  const start = part.range?.offset ?? 0;
  return {
    name: part.path,
    isRange: part.range !== null,
    start,
    end: start + held.length,
    read: async (offset, length) => held.subarray(offset - start, offset - start + length),
  };
}

/** The bytes of its file that a part is. */
export function rangeOf({ range }: MediaPart, { sizeBytes }: Pick<ByteSource, 'sizeBytes'>): ByteRange {
  return range ?? { offset: 0, length: sizeBytes };
}

/** Lists the boxes of a part; an AppError that names box and offset where one does not fit. */
export async function listTopBoxes(reader: PartReader): Promise<TopBox[]> {
  const boxes: TopBox[] = [];
  let offset = reader.start;
  while (offset < reader.end) {
    const box = await readTopBox(reader, offset);
    if (boxes.length === TOP_BOXES_MAX_COUNT)
      throw malformed(reader, box, `it has more than ${TOP_BOXES_MAX_COUNT} boxes`);
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

export function malformed(reader: PartReader, box: Pick<TopBox, 'type' | 'offset'>, problem: string): AppError {
  return new AppError('FRAGMENT_MALFORMED', { file: reader.name, boxType: box.type, offset: box.offset, problem });
}

/** A box in memory, with what is inside it; an AppError where it has more than `maxSizeBytes`. */
export async function readBox(reader: PartReader, box: TopBox, maxSizeBytes: number): Promise<Box> {
  if (box.sizeBytes > maxSizeBytes) throw malformed(reader, box, `it is larger than ${maxSizeBytes} bytes`);
  return new Box(reader.name, { ...box, sizeForm: 'compact' }, await reader.read(box.offset, box.sizeBytes));
}
