import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import {
  CHUNK_HEADER_SIZE_BYTES,
  LARGEST_RIFF_SIZE_BYTES,
  RIFF_HEADER_SIZE_BYTES,
  WIDE_SIZES_CHUNK_ID,
} from './riff-chunks.ts';

/** What WAVE starts with where its sizes may be 64 bits wide (EBU Tech 3306; ITU-R BS.2088). */
const SIGNATURES = ['RF64', 'BW64'];
/** Of the chunk with the 64-bit sizes: those of the file and of `data`, and what is not needed. */
const SIZES_USED_BYTES = 16;

/** What stands in 64 bits; 0 where a recording was never closed. */
export interface WideSizes {
  readonly riffSizeBytes: number;
  readonly dataSizeBytes: number;
}

export function isWave64(signature: string): boolean {
  return SIGNATURES.includes(signature);
}

/**
 * Reads the sizes of a 64-bit WAVE file, which stand in its first chunk. Readers of C2PA know RIFF alone, so that the file
 * has to become that, and is refused where it is too large. A table of further sizes is not read: a chunk other than `data`
 * that needs one is too large too.
 */
export async function readWideSizes(source: ByteSource, signature: string, signal: AbortSignal): Promise<WideSizes> {
  const { name, sizeBytes } = source;
  const length = Math.min(CHUNK_HEADER_SIZE_BYTES + SIZES_USED_BYTES, sizeBytes - RIFF_HEADER_SIZE_BYTES);
  const chunk = await readRange(source, RIFF_HEADER_SIZE_BYTES, length, signal);
  const isComplete = length === CHUNK_HEADER_SIZE_BYTES + SIZES_USED_BYTES;
  if (
    !isComplete ||
    chunk.toString('latin1', 0, 4) !== WIDE_SIZES_CHUNK_ID ||
    chunk.readUInt32LE(4) < SIZES_USED_BYTES
  ) {
    throw new AppError('RIFF_CHUNK_MISSING', { name, chunkId: WIDE_SIZES_CHUNK_ID });
  }
  // Past the safe integers they become inexact, and are refused in any case.
  const riffSizeBytes = Number(chunk.readBigUInt64LE(CHUNK_HEADER_SIZE_BYTES));
  const dataSizeBytes = Number(chunk.readBigUInt64LE(CHUNK_HEADER_SIZE_BYTES + 8));
  const largest = Math.max(riffSizeBytes, dataSizeBytes);
  if (largest > LARGEST_RIFF_SIZE_BYTES) throw new AppError('RIFF_64_BIT', { name, signature, sizeBytes: largest });
  return { riffSizeBytes, dataSizeBytes };
}
