import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import type { ByteRange } from '../format-handler.ts';
import { CHUNK_HEADER_SIZE_BYTES, type RiffChunk } from './riff-chunks.ts';

// Players that read an AVI by its index look at no chunk ids: whatever the index leads to is media to them.

/** Bytes of all indexes of a file together; those of a film of ten hours have some 60 MB. */
const MAX_INDEX_BYTES = 128 * 1024 * 1024;
/** Bytes of the headers of a file. */
const MAX_HEADERS_BYTES = 16 * 1024 * 1024;
/** Bytes of the type of a list, behind its header. */
const LIST_TYPE_BYTES = 4;
/** Bytes of an entry of `idx1`: id, flags, offset, size. */
const ENTRY_BYTES = 16;
/** Bytes of `indx` and `ix##` before their entries (OpenDML AVI 1.02 §3), of an entry that names an index, and of one that names media. */
const INDEX_HEAD_BYTES = 24;
const SUPER_ENTRY_BYTES = 16;
const MEDIA_ENTRY_BYTES = 8;

/**
 * Tells whether an index of an AVI leads into a range of the file: `idx1`, which players count from the first chunk of media or from the
 * start of the file, or `indx` of OpenDML. Indexes that are too large to be looked at may lead anywhere.
 */
export async function indexLeadsInto(
  source: ByteSource,
  chunks: readonly RiffChunk[],
  range: ByteRange,
  signal: AbortSignal,
): Promise<boolean> {
  let leftBytes = MAX_INDEX_BYTES;
  const read = async (offset: number, length: number): Promise<Buffer | null> => {
    const available = Math.max(0, Math.min(length, source.sizeBytes - offset));
    leftBytes -= available;
    return leftBytes < 0 ? null : await readRange(source, offset, available, signal);
  };
  const isInside = (start: number, sizeBytes: number): boolean =>
    start < range.offset + range.length && range.offset < start + sizeBytes;
  const lists = chunks.filter(({ id }) => id === 'LIST');
  const types = new Map<RiffChunk, string>();
  for (const list of lists) {
    const type = await read(list.offset + CHUNK_HEADER_SIZE_BYTES, LIST_TYPE_BYTES);
    types.set(list, type?.toString('latin1') ?? '');
  }
  const movie = lists.find((list) => types.get(list) === 'movi');
  const firstAt = movie === undefined ? 0 : await firstMediaAt(movie, read);
  for (const index of chunks.filter(({ id }) => id === 'idx1')) {
    const entries = await read(index.offset + CHUNK_HEADER_SIZE_BYTES, index.sizeBytes);
    if (entries === null || entriesLeadInto(entries, firstAt, isInside)) return true;
  }
  for (const headers of lists.filter((list) => types.get(list) === 'hdrl')) {
    const bytes = await read(headers.offset + CHUNK_HEADER_SIZE_BYTES, Math.min(headers.sizeBytes, MAX_HEADERS_BYTES));
    for (const index of bytes === null ? [] : chunksNamed('indx', bytes.subarray(LIST_TYPE_BYTES))) {
      if (await openIndexLeadsInto(index, read, isInside)) return true;
    }
  }
  return leftBytes < 0;
}

type Read = (offset: number, length: number) => Promise<Buffer | null>;
type RangeTest = (start: number, sizeBytes: number) => boolean;

/** Returns where the first chunk of media begins: in the list of media, or in a list of one record in it. */
async function firstMediaAt(movie: RiffChunk, read: Read): Promise<number> {
  const start = movie.offset + CHUNK_HEADER_SIZE_BYTES + LIST_TYPE_BYTES;
  const isRecord = (await read(start, LIST_TYPE_BYTES))?.toString('latin1') === 'LIST';
  return isRecord ? start + CHUNK_HEADER_SIZE_BYTES + LIST_TYPE_BYTES : start;
}

function entriesLeadInto(entries: Buffer, firstAt: number, isInside: RangeTest): boolean {
  let shift: number | null = null;
  for (let at = 0; at + ENTRY_BYTES <= entries.length; at += ENTRY_BYTES) {
    if (!/^\d\d(?!pc)/.test(entries.toString('latin1', at, at + 4))) continue;
    const [offset, sizeBytes] = [entries.readUInt32LE(at + 8), entries.readUInt32LE(at + 12)];
    shift ??= firstAt - offset;
    const starts = [offset + shift, offset].map((start) => start + CHUNK_HEADER_SIZE_BYTES);
    if (starts.some((start) => isInside(start, sizeBytes))) return true;
  }
  return false;
}

/** Yields the contents of chunks of an id, in lists as well. */
function* chunksNamed(wanted: string, bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at + CHUNK_HEADER_SIZE_BYTES <= bytes.length; ) {
    const id = bytes.toString('latin1', at, at + 4);
    const sizeBytes = bytes.readUInt32LE(at + 4);
    const content = bytes.subarray(at + CHUNK_HEADER_SIZE_BYTES, at + CHUNK_HEADER_SIZE_BYTES + sizeBytes);
    if (id === wanted) yield content;
    if (id === 'LIST') yield* chunksNamed(wanted, content.subarray(LIST_TYPE_BYTES));
    at += CHUNK_HEADER_SIZE_BYTES + sizeBytes + (sizeBytes % 2);
  }
}

/** Follows an index of indexes to those of media, or reads one of media. */
async function openIndexLeadsInto(index: Buffer, read: Read, isInside: RangeTest): Promise<boolean> {
  if (index.length < INDEX_HEAD_BYTES) return false;
  const isOfIndexes = index.readUInt8(3) === 0;
  if (!isOfIndexes) return mediaLeadsInto(index, isInside);
  for (let at = INDEX_HEAD_BYTES; at + SUPER_ENTRY_BYTES <= index.length; at += SUPER_ENTRY_BYTES) {
    const [offset, sizeBytes] = [Number(index.readBigUInt64LE(at)), index.readUInt32LE(at + 8)];
    if (sizeBytes === 0) continue;
    const further = await read(offset + CHUNK_HEADER_SIZE_BYTES, sizeBytes);
    if (further === null || mediaLeadsInto(further, isInside)) return true;
  }
  return false;
}

function mediaLeadsInto(index: Buffer, isInside: RangeTest): boolean {
  if (index.length < INDEX_HEAD_BYTES) return false;
  const base = Number(index.readBigUInt64LE(12));
  for (let at = INDEX_HEAD_BYTES; at + MEDIA_ENTRY_BYTES <= index.length; at += MEDIA_ENTRY_BYTES) {
    // The highest bit says that a picture needs others.
    if (isInside(base + index.readUInt32LE(at), index.readUInt32LE(at + 4) & 0x7fff_ffff)) return true;
  }
  return false;
}
