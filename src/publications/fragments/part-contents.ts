import { createHash } from 'node:crypto';
import { AppError } from '#errors/app-error.ts';
import { describePart, type MediaPart, partKey } from '../media-part.ts';
import type { TopBox } from './top-boxes.ts';

/**
 * Records the contents of the parts of a publication when they were validated: of each the SHA-256 of everything that is
 * copied from it, which is all top-level boxes but those of C2PA. Takes some 150 bytes of memory for each part.
 */
export class PartContents {
  /** Digests as strings of 32 characters, which take less memory than buffers. */
  readonly #digests = new Map<string, string>();

  record(part: MediaPart, digest: Buffer): void {
    this.#digests.set(partKey(part), digest.toString('latin1'));
  }

  /** Rejects with `SOURCE_CHANGED` where a part that was validated is copied with other bytes. */
  requireSame(part: MediaPart, digest: Uint8Array | undefined): void {
    const validated = this.#digests.get(partKey(part));
    const copied = digest === undefined ? undefined : Buffer.from(digest).toString('latin1');
    if (validated === undefined || validated !== copied) {
      throw new AppError('SOURCE_CHANGED', { name: describePart(part) });
    }
  }
}

/** Computes the digest of a part in memory; `start` is its offset in the file. */
export function contentOf(boxes: readonly Pick<TopBox, 'offset' | 'sizeBytes'>[], part: Buffer, start: number): Buffer {
  const hash = createHash('sha256');
  for (const { offset, sizeBytes } of boxes) hash.update(part.subarray(offset - start, offset - start + sizeBytes));
  return hash.digest();
}
