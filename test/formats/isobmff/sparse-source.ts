import type { ByteSource } from '#bytes/byte-source.ts';
import type { SplicePlan } from '#bytes/splice-plan.ts';

/** A piece of a file: bytes, or a number of zeros that take no memory. */
export type Piece = Uint8Array | number;

/** A file of any size of which only some pieces are there, and the rest is zeros. Counts reads. */
export function sparseSource(
  pieces: readonly Piece[],
): ByteSource & { readonly readCount: number; readonly bytesRead: number } {
  const placed: { offset: number; bytes: Uint8Array }[] = [];
  let sizeBytes = 0;
  for (const piece of pieces) {
    if (typeof piece !== 'number') placed.push({ offset: sizeBytes, bytes: piece });
    sizeBytes += typeof piece === 'number' ? piece : piece.length;
  }
  let readCount = 0;
  let bytesRead = 0;
  return {
    name: 'sparse.mp4',
    sizeBytes,
    get readCount() {
      return readCount;
    },
    get bytesRead() {
      return bytesRead;
    },
    async read(target, offset) {
      if (offset < 0 || offset + target.length > sizeBytes) throw new RangeError(`a read at ${offset} of ${sizeBytes}`);
      readCount += 1;
      bytesRead += target.length;
      target.fill(0);
      for (const { offset: start, bytes } of placed) {
        if (start >= offset + target.length || start + bytes.length <= offset) continue;
        const from = Math.max(start, offset);
        const to = Math.min(start + bytes.length, offset + target.length);
        target.set(bytes.subarray(from - start, to - start), from - offset);
      }
    },
    close: () => Promise.resolve(),
  };
}

/** The part `[start, end)` of a plan's output, without writing the rest. The hole is zeros. */
export async function outputRange(plan: SplicePlan, source: ByteSource, start: number, end: number): Promise<Buffer> {
  const { signal } = new AbortController();
  const pieces: Buffer[] = [];
  let position = 0;
  for (const splice of plan.splices) {
    if (splice.kind === 'mark') continue;
    const length = splice.kind === 'insert' ? splice.bytes.length : splice.length;
    const from = Math.max(start - position, 0);
    const to = Math.min(end - position, length);
    if (from < to) {
      const piece = Buffer.alloc(to - from);
      if (splice.kind === 'insert') piece.set(splice.bytes.subarray(from, to));
      if (splice.kind === 'copy') await source.read(piece, splice.offset + from, signal);
      pieces.push(piece);
    }
    position += length;
  }
  return Buffer.concat(pieces);
}
