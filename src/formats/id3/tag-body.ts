import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import type { Splice } from '#bytes/splice-plan.ts';
import { AppError } from '#errors/app-error.ts';
import { ReadWindow } from '../read-window.ts';
import { undoUnsynchronisation, unsynchronisedOffset } from './unsynchronisation.ts';

/** A tag that was unsynchronised as a whole has to be rewritten in memory, so its size is bounded. */
const MAX_UNSYNCHRONISED_SIZE_BYTES = 64 * 1024 * 1024;

/**
 * What lies between a tag's header and its end, with unsynchronisation of the whole tag undone. Positions count from
 * the start of the body.
 */
export interface TagBody {
  readonly sizeBytes: number;
  read(position: number, length: number): Promise<Buffer>;
  /** The output bytes `[start, end)` of the body. */
  splices(start: number, end: number): Splice[];
  /** Where a position of the body stands in the source. */
  sourceOffset(position: number): number;
}

/** A body whose bytes are used as they stand in the source; nothing but headers is ever read. */
export function plainBody(source: ByteSource, offset: number, sizeBytes: number, signal: AbortSignal): TagBody {
  const window = new ReadWindow(source, signal);
  return {
    sizeBytes,
    read: (position, length) => window.read(offset + position, length),
    splices: (start, end) =>
      end > start ? [{ kind: 'copy', offset: offset + start, length: end - start, into: 'flat' }] : [],
    sourceOffset: (position) => offset + position,
  };
}

/** A body that v2.2 or v2.3 unsynchronised as a whole: it is held in memory as it was before. */
export async function unsynchronisedBody(
  source: ByteSource,
  offset: number,
  sizeBytes: number,
  signal: AbortSignal,
): Promise<TagBody> {
  const maxSizeBytes = MAX_UNSYNCHRONISED_SIZE_BYTES;
  if (sizeBytes > maxSizeBytes) {
    throw new AppError('ID3_UNSYNCHRONISED_TAG_TOO_LARGE', { name: source.name, offset, sizeBytes, maxSizeBytes });
  }
  const stored = await readRange(source, offset, sizeBytes, signal);
  const undone = undoUnsynchronisation(stored);
  return {
    sizeBytes: undone.length,
    read: async (position, length) => undone.subarray(position, position + length),
    splices: (start, end) =>
      end > start ? [{ kind: 'insert', bytes: undone.subarray(start, end), into: 'flat' }] : [],
    sourceOffset: (position) => offset + unsynchronisedOffset(stored, position),
  };
}
