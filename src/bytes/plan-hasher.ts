import { createHash, type Hash, webcrypto } from 'node:crypto';
import type { PlanChunk } from './plan-chunks.ts';
import type { HashAlgorithm, PlanDigests } from './splice-plan.ts';

/** The names that the Web Crypto API has for the algorithms of the C2PA specification. */
const WEB_CRYPTO_NAMES: Readonly<Record<HashAlgorithm, string>> = {
  sha256: 'SHA-256',
  sha384: 'SHA-384',
  sha512: 'SHA-512',
};

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

  /** Digests a chunk's leaves on the thread pool; chunks come in any order. */
  async addLeaves(chunk: PlanChunk, bytes: Uint8Array): Promise<void> {
    for (const { index, start, end } of chunk.leaves) {
      const leaf = await webcrypto.subtle.digest(WEB_CRYPTO_NAMES[this.#algorithm], bytes.subarray(start, end));
      this.#leaves[index] = new Uint8Array(leaf);
    }
  }

  /** The digests of everything that was added. To be called once, at the end. */
  digests(): PlanDigests {
    return { flat: this.#flat.digest(), leaves: this.#leaves };
  }
}
