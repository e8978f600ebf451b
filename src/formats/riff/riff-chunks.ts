import type { ByteSource } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import { ReadWindow } from '../read-window.ts';

/** A chunk id and a chunk size, 4 bytes each. */
export const CHUNK_HEADER_SIZE_BYTES = 8;
/** `RIFF`, its size, and the form type. */
export const RIFF_HEADER_SIZE_BYTES = 12;
/** What a writer that cannot seek back leaves in a size field; also what stands there where it has no room (RF64). */
export const SIZE_UNKNOWN = 0xffff_ffff;
/** RIFF sizes are 32 bits wide, and the largest value means that the size is not known. */
export const LARGEST_RIFF_SIZE_BYTES = SIZE_UNKNOWN - 1;
/** In a 64-bit WAVE file, the chunk with its sizes. */
export const WIDE_SIZES_CHUNK_ID = 'ds64';
/** What SoX writes as the size of `data` to a pipe. */
const SIZE_UNKNOWN_TO_SOX = 0x7fff_f000;
/** From here on it is the largest size less some headers: what others write to a pipe. */
const SMALLEST_SIZE_OF_PIPE = 0xffff_ff00;
/** Bound of the chunks inside one RIFF; files in the wild hold a few dozen at most. */
const MAX_CHUNKS = 4096;

/** One chunk directly inside the RIFF chunk. Offsets and sizes in bytes. */
export interface RiffChunk {
  /** Four characters, such as `fmt ` or `data`. */
  readonly id: string;
  /** Of the chunk's header, from the start of the file. */
  readonly offset: number;
  /** Of the payload alone. */
  readonly sizeBytes: number;
  /** True where its header does not say so, or has a meaning only in RF64, and must be written anew. */
  readonly isRestated: boolean;
  /** True where the size is odd, and the next chunk follows without a byte that fills it up. */
  readonly isUnpadded: boolean;
}

/** Where the chunks of a RIFF file stand. */
export interface RiffChunks {
  readonly chunks: readonly RiffChunk[];
  /** Where the last chunk ends, with its pad byte where it has one. */
  readonly chunksEnd: number;
  /** True where the last chunk has an odd size and its pad byte is missing. */
  readonly lacksPad: boolean;
  /** Where the RIFF chunk ends: at least `chunksEnd`, and at most the file's size. */
  readonly riffEnd: number;
}

/** What is known of a RIFF file before its chunks are walked. */
interface RiffTraits {
  /** As its header says; null where that was never known. */
  readonly riffSizeBytes: number | null;
  /** Of the sound, where its own header has no room for it; null in anything but a 64-bit WAVE file. */
  readonly wideDataSizeBytes: number | null;
  /** Whether nothing in the file says where in it a chunk stands. */
  readonly mayMove: boolean;
}

/**
 * Walks the chunks of a RIFF file, given what its RIFF header says (Multimedia Programming Interface 1.0, ch. 2), or null
 * where that was never known. Sound whose size was never known goes on to the end, as players take it. Where chunks may
 * move, those that lack their pad byte may get it.
 */
export async function readChunks(
  source: ByteSource,
  { riffSizeBytes, wideDataSizeBytes, mayMove }: RiffTraits,
  signal: AbortSignal,
): Promise<RiffChunks> {
  const window = new ReadWindow(source, signal);
  let statedEnd = riffSizeBytes === null ? source.sizeBytes : CHUNK_HEADER_SIZE_BYTES + riffSizeBytes;
  const chunks: RiffChunk[] = [];
  let position = RIFF_HEADER_SIZE_BYTES;
  while (position + CHUNK_HEADER_SIZE_BYTES <= Math.min(statedEnd, source.sizeBytes)) {
    if (chunks.length === MAX_CHUNKS) {
      throw new AppError('RIFF_TOO_MANY_CHUNKS', { name: source.name, maxChunks: MAX_CHUNKS, offset: position });
    }
    const stated = parseChunkHeader(source, await window.read(position, CHUNK_HEADER_SIZE_BYTES), position);
    const chunk = wideDataSizeBytes === null ? stated : asInRiff(stated, wideDataSizeBytes);
    const openEnded = soundToTheEnd(source, chunk, riffSizeBytes === null ? null : statedEnd);
    if (openEnded !== null) return closeChunks(source, [...chunks, openEnded], source.sizeBytes);
    // A chunk that ends with the file is whole, whatever the RIFF header says: some writers leave chunks out of its sum.
    if (endOf(chunk) > statedEnd && endsWithFile(source, chunk)) statedEnd = source.sizeBytes;
    requireInside(source, chunk, statedEnd);
    const isUnpadded = mayMove && (await lacksPadBefore(window, chunk, Math.min(statedEnd, source.sizeBytes)));
    const placed = { ...chunk, isUnpadded };
    chunks.push(placed);
    position = paddedEndOf(placed);
  }
  // Some leave only the pad byte of the last chunk out of that sum.
  const isPadNext = position > statedEnd && statedEnd < source.sizeBytes && (await window.read(statedEnd, 1))[0] === 0;
  return closeChunks(source, chunks, isPadNext ? position : statedEnd);
}

/** A chunk of a 64-bit WAVE file: its chunk of sizes is what a writer reserves for it in RIFF (ITU-R BS.2088, §2.5). */
function asInRiff(chunk: RiffChunk, wideDataSizeBytes: number): RiffChunk {
  if (chunk.id === WIDE_SIZES_CHUNK_ID) return { ...chunk, id: 'JUNK', isRestated: true };
  const isWide = chunk.id === 'data' && chunk.sizeBytes === SIZE_UNKNOWN && wideDataSizeBytes > 0;
  return isWide ? { ...chunk, sizeBytes: wideDataSizeBytes, isRestated: true } : chunk;
}

/** A `data` chunk without a size as one up to the file's end, unless the RIFF chunk says that it has no such size. */
function soundToTheEnd(source: ByteSource, chunk: RiffChunk, statedEnd: number | null): RiffChunk | null {
  if (chunk.id !== 'data' || !isUnknownSize(chunk.sizeBytes)) return null;
  const start = chunk.offset + CHUNK_HEADER_SIZE_BYTES;
  const isStated = statedEnd !== null && statedEnd > start && statedEnd <= source.sizeBytes;
  const sizeBytes = source.sizeBytes - start;
  if (isStated || sizeBytes <= 0) return null;
  if (sizeBytes < SIZE_UNKNOWN) return { ...chunk, sizeBytes, isRestated: true };
  throw new AppError('RIFF_TOO_LARGE', { name: source.name, sizeBytes, maxSizeBytes: LARGEST_RIFF_SIZE_BYTES });
}

function isUnknownSize(sizeBytes: number): boolean {
  return sizeBytes === 0 || sizeBytes === SIZE_UNKNOWN_TO_SOX || sizeBytes >= SMALLEST_SIZE_OF_PIPE;
}

/** Whether the next chunk stands right behind an odd payload, and none where it should: some writers forget the pad byte. */
async function lacksPadBefore(window: ReadWindow, chunk: RiffChunk, limit: number): Promise<boolean> {
  if (chunk.sizeBytes % 2 === 0) return false;
  const isChunkAt = async (position: number): Promise<boolean> => {
    if (position + CHUNK_HEADER_SIZE_BYTES > limit) return false;
    const header = await window.read(position, CHUNK_HEADER_SIZE_BYTES);
    return isChunkId(header) && position + CHUNK_HEADER_SIZE_BYTES + header.readUInt32LE(4) <= limit;
  };
  return !(await isChunkAt(paddedEndOf(chunk))) && (await isChunkAt(endOf(chunk)));
}

/** Anything but printable ASCII is no chunk id. */
function isChunkId(header: Buffer): boolean {
  return /^[\x20-\x7e]{4}$/.test(header.toString('latin1', 0, 4));
}

/** End of a chunk's payload. */
export function endOf(chunk: RiffChunk): number {
  return chunk.offset + CHUNK_HEADER_SIZE_BYTES + chunk.sizeBytes;
}

/** End of a chunk with the byte that fills it up to an even size. */
export function paddedEndOf(chunk: RiffChunk): number {
  return endOf(chunk) + (chunk.isUnpadded ? 0 : chunk.sizeBytes % 2);
}

function endsWithFile({ sizeBytes }: ByteSource, chunk: RiffChunk): boolean {
  return endOf(chunk) === sizeBytes || paddedEndOf(chunk) === sizeBytes;
}

function parseChunkHeader(source: ByteSource, header: Buffer, offset: number): RiffChunk {
  const id = header.toString('latin1', 0, 4);
  // The walk has lost its way: the chunk before has a wrong size.
  if (!isChunkId(header)) {
    throw new AppError('RIFF_CHUNK_ID_INVALID', { name: source.name, id: header.toString('hex', 0, 4), offset });
  }
  return { id, offset, sizeBytes: header.readUInt32LE(4), isRestated: false, isUnpadded: false };
}

function requireInside(source: ByteSource, chunk: RiffChunk, statedEnd: number): void {
  const { id: chunkId, offset, sizeBytes } = chunk;
  if (chunkId === 'data' && (sizeBytes === 0 || sizeBytes === SIZE_UNKNOWN)) {
    throw new AppError('RIFF_SIZE_UNKNOWN', { name: source.name, chunkId, offset, sizeBytes });
  }
  const limit = Math.min(statedEnd, source.sizeBytes);
  if (endOf(chunk) > limit) {
    const parent = statedEnd <= source.sizeBytes ? 'RIFF chunk' : 'file';
    throw new AppError('RIFF_CHUNK_EXCEEDS_PARENT', { name: source.name, chunkId, offset, sizeBytes, parent, limit });
  }
}

/**
 * Some writers leave out the pad byte of the last chunk, or state a RIFF size that is some bytes too large. As every
 * chunk lies whole inside the file, neither is a reason to refuse it.
 */
function closeChunks(source: ByteSource, chunks: RiffChunk[], statedEnd: number): RiffChunks {
  const riffEnd = Math.min(statedEnd, source.sizeBytes);
  const last = chunks.at(-1);
  const position = last === undefined ? RIFF_HEADER_SIZE_BYTES : paddedEndOf(last);
  const lacksPad = position > riffEnd;
  return { chunks, chunksEnd: lacksPad ? riffEnd : position, lacksPad, riffEnd };
}
