import { createHash, type Hash, hash } from 'node:crypto';
import type { PlanChunk } from './plan-chunks.ts';
import type { HashAlgorithm, PlanDigests } from './splice-plan.ts';

/** The hashes of one walk over a plan. */
export class PlanHasher {
  readonly #algorithm: HashAlgorithm;
  readonly #flat: Hash;
  readonly #leaves: Uint8Array[] = [];

  constructor(algorithm: HashAlgorithm) {
    this.#algorithm = algorithm;
    this.#flat = createHash(algorithm);
  }

  /** Adds a chunk to the flat hash, on this thread; chunks come in plan order. */
  addFlat(chunk: PlanChunk, bytes: Uint8Array): void {
    for (const step of chunk.flat) {
      this.#flat.update(step.kind === 'mark' ? step.bytes : bytes.subarray(step.start, step.end));
    }
  }

  /**
   * Digests a chunk's leaves; chunks come in any order. On this thread, while the thread pool reads and writes: Web
   * Crypto would digest on the pool, but copies every leaf first, and was no faster on two cores (1.2 GB, medians of 12).
   */
  addLeaves(chunk: PlanChunk, bytes: Uint8Array): void {
    for (const { index, start, end } of chunk.leaves) {
      this.#leaves[index] = hash(this.#algorithm, bytes.subarray(start, end), 'buffer');
    }
  }

  /** The digests of everything that was added. To be called once, at the end. */
  digests(): PlanDigests {
    return { flat: this.#flat.digest(), leaves: this.#leaves };
  }
}
