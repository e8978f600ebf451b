import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { MediaPart } from './publication.ts';

/** A box (ISO/IEC 14496-12 §4.2) as it lies in its file. Offsets count from the file's start. */
export interface TopBox {
  /** The 4CC; fewer than eight bytes at the end of a file make a box of type '' and no header. */
  readonly type: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly headerSizeBytes: number;
  /** The first bytes of the box, header included, at most `BOX_HEAD_SIZE_BYTES`. */
  readonly head: Buffer;
}

/** Enough of a box to see its header, a uuid, and what kind of C2PA box it is. */
export const BOX_HEAD_SIZE_BYTES = 48;
/** Boxes at the top level of one fragment or init segment; events (emsg) may be many. */
const TOP_BOXES_MAX_COUNT = 4_096;
/** The first read takes so much, so that small fragments are read once. */
const FIRST_READ_BYTES = 16 * 1024;

/** Reads bytes of one file near its start from memory, and all else from the file. */
export interface PartReader {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  read(offset: number, length: number): Promise<Buffer>;
}

/** A reader of one part of an opened file, with the part's beginning read ahead. */
export async function readerOf(source: ByteSource, part: MediaPart, signal: AbortSignal): Promise<PartReader> {
  const start = part.range?.offset ?? 0;
  const end = part.range === null ? source.sizeBytes : start + part.range.length;
  const ahead = await readRange(source, start, Math.min(FIRST_READ_BYTES, end - start), signal);
  return {
    name: part.path,
    start,
    end,
    read: async (offset, length) => {
      const from = offset - start;
      if (from + length <= ahead.length) return ahead.subarray(from, from + length);
      return await readRange(source, offset, length, signal);
    },
  };
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
  if (available < 8) return { type: '', offset, sizeBytes: available, headerSizeBytes: 0, head };
  const type = head.toString('latin1', 4, 8);
  const { sizeBytes, headerSizeBytes } = sizesIn(head, available);
  if (sizeBytes < headerSizeBytes || sizeBytes > available) {
    throw malformed(
      reader,
      { type, offset },
      `its size of ${sizeBytes} bytes does not fit into the ${available} bytes left`,
    );
  }
  return { type, offset, sizeBytes, headerSizeBytes, head: head.subarray(0, sizeBytes) };
}

function sizesIn(head: Buffer, available: number): { sizeBytes: number; headerSizeBytes: number } {
  const compact = head.readUInt32BE(0);
  if (compact === 0) return { sizeBytes: available, headerSizeBytes: 8 };
  if (compact !== 1) return { sizeBytes: compact, headerSizeBytes: 8 };
  if (head.length < 16) return { sizeBytes: 0, headerSizeBytes: 16 };
  const large = head.readBigUInt64BE(8);
  // What is past the safe integers is past every file too, and is refused as such.
  return {
    sizeBytes: large > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(large),
    headerSizeBytes: 16,
  };
}

export function malformed(reader: PartReader, box: Pick<TopBox, 'type' | 'offset'>, problem: string): AppError {
  return new AppError('FRAGMENT_MALFORMED', { file: reader.name, boxType: box.type, offset: box.offset, problem });
}
