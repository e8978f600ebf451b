import { type ByteSource, ReadWindow, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';

/** Header of a chunk: id and size, 4 bytes each. */
export const CHUNK_HEADER_SIZE_BYTES = 8;
/** Header of a RIFF file: `RIFF`, its size, and the form type. */
export const RIFF_HEADER_SIZE_BYTES = 12;
/** Size written by a program that cannot seek back; in RF64, the size of a chunk whose size is in `ds64`. */
export const SIZE_UNKNOWN = 0xffff_ffff;
/** Largest RIFF size: sizes have 32 bits, and the largest value means that the size is unknown. */
export const MAX_RIFF_SIZE_BYTES = SIZE_UNKNOWN - 1;
/** Chunk with the sizes of a 64-bit WAVE file. */
const WIDE_SIZES_CHUNK_ID = 'ds64';
/** Size of `data` that SoX writes to a pipe. */
const SIZE_UNKNOWN_TO_SOX = 0x7fff_f000;

/**
 * Smallest size of `data` that counts as unknown: other programs write the largest size minus some headers to a pipe.
 */
const MIN_SIZE_WRITTEN_TO_PIPE = 0xffff_ff00;
/** Largest number of chunks in one RIFF; real files have a few dozen at most. */
const MAX_CHUNKS = 4096;
/** Signatures of 64-bit WAVE (EBU Tech 3306; ITU-R BS.2088). */
const SIGNATURES = ['RF64', 'BW64'];
/** Size of the fields of `ds64` that are read: the sizes of the file and of `data`, and the number of samples. */
const DS64_READ_SIZE_BYTES = 24;
/** Chunk with the number of samples of sound that is compressed, in its first 4 bytes. */
const FACT_CHUNK_ID = 'fact';
const SAMPLE_COUNT_SIZE_BYTES = 4;

/** Chunk directly inside the RIFF chunk. Offsets and sizes in bytes. */
export interface RiffChunk {
  /** Four characters, such as `fmt ` or `data`. */
  readonly id: string;
  /** Offset of the chunk's header, counted from the start of the file. */
  readonly offset: number;
  /** Size of the payload, without header and pad byte. */
  readonly sizeBytes: number;
  /** True where the header is wrong, or has a meaning in RF64 only, and must be rewritten. */
  readonly isRestated: boolean;
  /** Number of samples that a `fact` chunk is restated with. */
  readonly sampleCount?: number;
  /** True where the size is odd and the next chunk follows without a pad byte. */
  readonly isUnpadded: boolean;
}

/** Positions of the chunks of a RIFF file. */
export interface RiffChunks {
  readonly chunks: readonly RiffChunk[];
  /** End of the last chunk, with its pad byte if any. */
  readonly chunksEnd: number;
  /** True where the last chunk has an odd size and its pad byte is missing. */
  readonly lacksPad: boolean;
  /** End of the RIFF chunk: at least `chunksEnd`, at most the file's size. */
  readonly riffEnd: number;
}

/** Properties of a RIFF file that are known before its chunks are walked. */
interface RiffSizes {
  /** Size in the RIFF header; null where it was never known. */
  readonly riffSizeBytes: number | null;
  /** Sizes of a 64-bit WAVE file; null in other files. */
  readonly wide: WideSizes | null;
  /** True where the file stores no offsets of chunks, so that these may move. */
  readonly mayMove: boolean;
}

/** Sizes in `ds64`; 0 where a recording was never closed. */
export interface WideSizes {
  readonly riffSizeBytes: number;
  readonly dataSizeBytes: number;
  readonly sampleCount: number;
}

/**
 * Walks the chunks of a RIFF file (Multimedia Programming Interface 1.0, ch. 2). A `data` chunk of unknown size
 * extends to the end of the file, as in players. Chunks that may move are marked where they lack their pad
 * byte. Throws `RIFF_TOO_MANY_CHUNKS`, `RIFF_CHUNK_ID_INVALID`, `RIFF_CHUNK_EXCEEDS_PARENT`,
 * `RIFF_SIZE_UNKNOWN`, `RIFF_SOUND_EMPTY` or `RIFF_TOO_LARGE`.
 */
export async function readChunks(
  source: ByteSource,
  { riffSizeBytes, wide, mayMove }: RiffSizes,
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
    const chunk = wide === null ? stated : asInRiff(stated, wide);
    const openEnded = openEndedData(source, chunk, riffSizeBytes === null ? null : statedEnd);
    if (openEnded !== null) return closeChunks(source, [...chunks, openEnded], source.sizeBytes);
    // A chunk that ends with the file is complete, whatever the RIFF header says: some programs omit chunks from its size.
    if (endOf(chunk) > statedEnd && endsWithFile(source, chunk)) statedEnd = source.sizeBytes;
    requireInside(source, chunk, statedEnd);
    const isUnpadded = mayMove && (await lacksPadBefore(window, chunk, Math.min(statedEnd, source.sizeBytes)));
    const placed = { ...(wide === null ? chunk : await withSampleCount(window, chunk, wide)), isUnpadded };
    chunks.push(placed);
    position = paddedEndOf(placed);
  }
  // Some programs do not count the pad byte of the last chunk in the RIFF size.
  const isPadNext = position > statedEnd && statedEnd < source.sizeBytes && (await window.read(statedEnd, 1))[0] === 0;
  return closeChunks(source, chunks, isPadNext ? position : statedEnd);
}

/** Converts a chunk of 64-bit WAVE for RIFF: `ds64` becomes `JUNK`, as programs reserve it (ITU-R BS.2088, §2.5). */
function asInRiff(chunk: RiffChunk, { dataSizeBytes }: WideSizes): RiffChunk {
  if (chunk.id === WIDE_SIZES_CHUNK_ID) return { ...chunk, id: 'JUNK', isRestated: true };
  const isWide = chunk.id === 'data' && chunk.sizeBytes === SIZE_UNKNOWN && dataSizeBytes > 0;
  return isWide ? { ...chunk, sizeBytes: dataSizeBytes, isRestated: true } : chunk;
}

/** Takes the number of samples of a `fact` chunk from `ds64`, where it says that it is there (EBU Tech 3306). */
async function withSampleCount(window: ReadWindow, chunk: RiffChunk, { sampleCount }: WideSizes): Promise<RiffChunk> {
  const isKnown = sampleCount > 0 && sampleCount < SIZE_UNKNOWN;
  if (chunk.id !== FACT_CHUNK_ID || chunk.sizeBytes < SAMPLE_COUNT_SIZE_BYTES || !isKnown) return chunk;
  const stated = await window.read(chunk.offset + CHUNK_HEADER_SIZE_BYTES, SAMPLE_COUNT_SIZE_BYTES);
  return stated.readUInt32LE() === SIZE_UNKNOWN ? { ...chunk, isRestated: true, sampleCount } : chunk;
}

/**
 * Returns a `data` chunk of unknown size as one up to the end of the file, unless the RIFF size rules that
 * out; else null.
 */
function openEndedData(source: ByteSource, chunk: RiffChunk, statedEnd: number | null): RiffChunk | null {
  if (chunk.id !== 'data' || !isUnknownSize(chunk.sizeBytes)) return null;
  const start = chunk.offset + CHUNK_HEADER_SIZE_BYTES;
  const isStated = statedEnd !== null && statedEnd > start && statedEnd <= source.sizeBytes;
  const sizeBytes = source.sizeBytes - start;
  if (isStated || sizeBytes <= 0) return null;
  if (sizeBytes < SIZE_UNKNOWN) return { ...chunk, sizeBytes, isRestated: true };
  throw new AppError('RIFF_TOO_LARGE', { name: source.name, sizeBytes, maxSizeBytes: MAX_RIFF_SIZE_BYTES });
}

function isUnknownSize(sizeBytes: number): boolean {
  return sizeBytes === 0 || sizeBytes === SIZE_UNKNOWN_TO_SOX || sizeBytes >= MIN_SIZE_WRITTEN_TO_PIPE;
}

/** Tells whether the next chunk directly follows an odd payload: some programs omit the pad byte. */
async function lacksPadBefore(window: ReadWindow, chunk: RiffChunk, limit: number): Promise<boolean> {
  if (chunk.sizeBytes % 2 === 0) return false;
  const isChunkAt = async (position: number): Promise<boolean> => {
    if (position + CHUNK_HEADER_SIZE_BYTES > limit) return false;
    const header = await window.read(position, CHUNK_HEADER_SIZE_BYTES);
    return isChunkId(header) && position + CHUNK_HEADER_SIZE_BYTES + header.readUInt32LE(4) <= limit;
  };
  return !(await isChunkAt(paddedEndOf(chunk))) && (await isChunkAt(endOf(chunk)));
}

/** Tells whether a header starts with a chunk id: four printable ASCII characters. */
function isChunkId(header: Buffer): boolean {
  return /^[\x20-\x7e]{4}$/.test(header.toString('latin1', 0, 4));
}

/** Returns the end of a chunk's payload. */
export function endOf(chunk: RiffChunk): number {
  return chunk.offset + CHUNK_HEADER_SIZE_BYTES + chunk.sizeBytes;
}

/** Returns the end of a chunk with its pad byte. */
export function paddedEndOf(chunk: RiffChunk): number {
  return endOf(chunk) + (chunk.isUnpadded ? 0 : chunk.sizeBytes % 2);
}

function endsWithFile({ sizeBytes }: ByteSource, chunk: RiffChunk): boolean {
  return endOf(chunk) === sizeBytes || paddedEndOf(chunk) === sizeBytes;
}

function parseChunkHeader(source: ByteSource, header: Buffer, offset: number): RiffChunk {
  const id = header.toString('latin1', 0, 4);
  // The previous chunk has a wrong size.
  if (!isChunkId(header)) {
    throw new AppError('RIFF_CHUNK_ID_INVALID', { name: source.name, id: header.toString('hex', 0, 4), offset });
  }
  return { id, offset, sizeBytes: header.readUInt32LE(4), isRestated: false, isUnpadded: false };
}

function requireInside(source: ByteSource, chunk: RiffChunk, statedEnd: number): void {
  const { id: chunkId, offset, sizeBytes } = chunk;
  // Players take all that follows for sound, a manifest too.
  if (chunkId === 'data' && sizeBytes === 0) throw new AppError('RIFF_SOUND_EMPTY', { name: source.name, offset });
  if (chunkId === 'data' && sizeBytes === SIZE_UNKNOWN) {
    throw new AppError('RIFF_SIZE_UNKNOWN', { name: source.name, chunkId, offset, sizeBytes });
  }
  const limit = Math.min(statedEnd, source.sizeBytes);
  if (endOf(chunk) > limit) {
    const parent = statedEnd <= source.sizeBytes ? 'RIFF chunk' : 'file';
    throw new AppError('RIFF_CHUNK_EXCEEDS_PARENT', { name: source.name, chunkId, offset, sizeBytes, parent, limit });
  }
}

/**
 * Returns the chunks with their end. Accepts a last chunk without its pad byte and a RIFF size that is some bytes too
 * large: every chunk lies completely inside the file.
 */
function closeChunks(source: ByteSource, chunks: RiffChunk[], statedEnd: number): RiffChunks {
  const riffEnd = Math.min(statedEnd, source.sizeBytes);
  const last = chunks.at(-1);
  const position = last === undefined ? RIFF_HEADER_SIZE_BYTES : paddedEndOf(last);
  const lacksPad = position > riffEnd;
  return { chunks, chunksEnd: lacksPad ? riffEnd : position, lacksPad, riffEnd };
}

export function isWave64(signature: string): boolean {
  return SIGNATURES.includes(signature);
}

/**
 * Reads the sizes of a 64-bit WAVE file from its first chunk, `ds64`. C2PA readers know RIFF only, so the file has to
 * become that. The table of further sizes is not read: a chunk other than `data` that needs one is too large for RIFF.
 * Throws `RIFF_64_BIT` for a file too large for RIFF, and `RIFF_CHUNK_MISSING`.
 */
export async function readWideSizes(source: ByteSource, signature: string, signal: AbortSignal): Promise<WideSizes> {
  const { name, sizeBytes } = source;
  const length = Math.min(CHUNK_HEADER_SIZE_BYTES + DS64_READ_SIZE_BYTES, sizeBytes - RIFF_HEADER_SIZE_BYTES);
  const chunk = await readRange(source, RIFF_HEADER_SIZE_BYTES, length, signal);
  const isComplete = length === CHUNK_HEADER_SIZE_BYTES + DS64_READ_SIZE_BYTES;
  if (
    !isComplete ||
    chunk.toString('latin1', 0, 4) !== WIDE_SIZES_CHUNK_ID ||
    chunk.readUInt32LE(4) < DS64_READ_SIZE_BYTES
  ) {
    throw new AppError('RIFF_CHUNK_MISSING', { name, chunkId: WIDE_SIZES_CHUNK_ID });
  }
  // Sizes beyond the safe integers become inexact, and are refused in any case.
  const riffSizeBytes = Number(chunk.readBigUInt64LE(CHUNK_HEADER_SIZE_BYTES));
  const dataSizeBytes = Number(chunk.readBigUInt64LE(CHUNK_HEADER_SIZE_BYTES + 8));
  const sampleCount = Number(chunk.readBigUInt64LE(CHUNK_HEADER_SIZE_BYTES + 16));
  const largest = Math.max(riffSizeBytes, dataSizeBytes);
  if (largest > MAX_RIFF_SIZE_BYTES) throw new AppError('RIFF_64_BIT', { name, signature, sizeBytes: largest });
  return { riffSizeBytes, dataSizeBytes, sampleCount };
}
