import { createHash, type Hash } from 'node:crypto';
import type { PlanChunk } from './plan-chunks.ts';
import type { HashAlgorithm, PlanDigests } from './splice-plan.ts';

/**
 * The hashes of one walk over a plan. They are computed on this thread, while the thread pool reads and writes: Web Crypto
 * would digest leaves on the pool, but copies every one first, and was no faster on two cores (1.2 GB, medians of 12).
 */
export class PlanHasher {
  readonly #algorithm: HashAlgorithm;
  readonly #flat: Hash;
  readonly #leaves: Uint8Array[] = [];
  /** The leaf that has begun. */
  #leaf: Hash | null = null;
  readonly #source: Hash | null;

  /** `digestsSource`: hash what is taken from the source, too. */
  constructor(algorithm: HashAlgorithm, digestsSource: boolean) {
    this.#algorithm = algorithm;
    this.#flat = createHash(algorithm);
    this.#source = digestsSource ? createHash('sha256') : null;
  }

  /** Adds a chunk; chunks come in plan order. */
  add(chunk: PlanChunk, bytes: Uint8Array): void {
    for (const step of chunk.hashed) {
      if (step.kind === 'mark') this.#flat.update(step.bytes);
      else if (step.kind === 'flat') this.#flat.update(bytes.subarray(step.start, step.end));
      else this.#addToLeaf(bytes.subarray(step.start, step.end), step.isLast);
    }
    if (this.#source !== null) addSourceOf(chunk, bytes, this.#source);
  }

  #addToLeaf(piece: Uint8Array, isLast: boolean): void {
    this.#leaf ??= createHash(this.#algorithm);
    this.#leaf.update(piece);
    if (!isLast) return;
    this.#leaves.push(this.#leaf.digest());
    this.#leaf = null;
  }

  /** The digests of everything that was added. To be called once, at the end. */
  digests(): PlanDigests {
    return {
      flat: this.#flat.digest(),
      leaves: this.#leaves,
      ...(this.#source !== null && { source: this.#source.digest() }),
    };
  }
}

/** Hashes the source bytes that a chunk was made of, in output order. */
function addSourceOf({ copies, inserts }: PlanChunk, bytes: Uint8Array, hash: Hash): void {
  const copied = copies.map(({ at, length }) => ({ at, piece: bytes.subarray(at, at + length) }));
  const replaced = inserts.flatMap(({ at, original }) => (original === undefined ? [] : [{ at, piece: original }]));
  for (const { piece } of [...copied, ...replaced].sort((first, second) => first.at - second.at)) hash.update(piece);
}
