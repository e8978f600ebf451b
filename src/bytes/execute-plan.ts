import assert from 'node:assert/strict';
import { createHash, type Hash } from 'node:crypto';
import { itemAt } from '#errors/assert.ts';
import { bufferPool, offsetInPage } from './buffers.ts';
import type { ByteWriter } from './byte-sink.ts';
import type { ByteSource } from './byte-source.ts';
import {
  type ChunkRead,
  chunksOf,
  copyRunsOf,
  type HashAlgorithm,
  holePosition,
  type PlanChunk,
  type PlanDigests,
  readsOf,
  type SplicePlan,
} from './splice-plan.ts';

/**
 * Size of a chunk: one read and one write. With direct I/O, 1.2 GB took 1.32 s with chunks of 1 MiB, 1.18 s with 2 and
 * 1.39 s with 4.
 */
const CHUNK_SIZE_BYTES = 2 * 1024 * 1024;

/**
 * Largest number of chunks of one execution in flight: enough to read ahead and write behind while one is hashed.
 * `bufferPool` bounds the memory of all executions.
 */
const MAX_CHUNKS_IN_FLIGHT = 8;

export interface ExecuteOptions {
  readonly signal: AbortSignal;
  /**
   * Called once per chunk with the number of output bytes written so far, without the hole; never decreasing. Without a
   * sink they are the bytes that were read.
   */
  readonly onProgress?: (bytesDone: number) => void;
  /** Adds `PlanDigests.source`, to compare the source with bytes that were validated before. */
  readonly digestSource?: boolean;
}

/**
 * Executes a plan in one pass and constant memory: reads the source ahead, hashes, and writes behind. The hole is not
 * written. When it returns or throws, nothing it started is still running. Throws the errors of source and sink,
 * `SOURCE_CHANGED` among them.
 */
export async function executePlan(
  plan: SplicePlan,
  source: ByteSource,
  sink: ByteWriter,
  options: ExecuteOptions,
): Promise<PlanDigests> {
  const { storedAt } = source;
  if (storedAt !== undefined) await sink.copyFrom?.(storedAt, copyRunsOf(plan), options.signal);
  return await new PlanExecution(plan, source, sink, options).run();
}

/** Executes a plan for its digests only: reads only the bytes that are hashed, and writes nothing. */
export async function digestPlan(plan: SplicePlan, source: ByteSource, options: ExecuteOptions): Promise<PlanDigests> {
  const splices = plan.splices.filter(
    (splice) => splice.kind === 'mark' || (splice.kind !== 'hole' && splice.into !== 'none'),
  );
  return await new PlanExecution({ ...plan, splices }, source, null, options).run();
}

/**
 * Executes a plan on a part of the source in memory, which starts at byte `sourceOffset` of the source. Fills `output`
 * and returns the flat digest; a hole is not written. For outputs of a few hundred kilobytes at most, for which reading
 * ahead and writing behind cost more than they save.
 */
export function applyInMemory(plan: SplicePlan, source: Buffer, sourceOffset: number, output: Buffer): Uint8Array {
  const hash = createHash(plan.hashing.algorithm);
  let position = 0;
  for (const splice of plan.splices) {
    if (splice.kind === 'mark') {
      hash.update(splice.bytes);
    } else if (splice.kind === 'hole') {
      position += splice.length;
    } else {
      assert(splice.into !== 'leaves', 'a plan with leaves is executed by executePlan');
      const bytes =
        splice.kind === 'insert' ? splice.bytes : sliceOf(source, splice.offset - sourceOffset, splice.length);
      output.set(bytes, position);
      if (splice.into === 'flat') hash.update(bytes);
      position += bytes.length;
    }
  }
  assert(position === output.length, 'the output has the size that the plan gives it');
  return hash.digest();
}

function sliceOf(source: Buffer, offset: number, length: number): Buffer {
  assert(offset >= 0 && offset + length <= source.length, 'a plan copies from the part in memory');
  return source.subarray(offset, offset + length);
}

/** Writes `bytes` into the plan's hole, whose size they have. */
export async function fillHole(
  plan: SplicePlan,
  sink: ByteWriter,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  const hole = plan.splices.find((splice) => splice.kind === 'hole');
  assert(hole !== undefined, 'the plan has a hole');
  assert.equal(bytes.length, hole.length, 'the hole is filled exactly');
  await sink.write(bytes, holePosition(plan), signal);
}

/** Slot that processes one chunk at a time; `idle` resolves when its chunk is finished. */
interface Slot {
  idle: Promise<void>;
  /** Buffer for reads that serve several copies of a chunk. */
  readBuffer?: Buffer;
}

class PlanExecution {
  readonly #plan: SplicePlan;
  readonly #source: ByteSource;
  readonly #sink: ByteWriter | null;
  readonly #options: ExecuteOptions;
  readonly #hasher: PlanHasher;
  readonly #stop = new AbortController();
  /** Aborted by the caller or by the first failure, so that other chunks in flight stop early. */
  readonly #signal: AbortSignal;
  #failure: { readonly error: unknown } | null = null;
  #bytesDone = 0;

  constructor(plan: SplicePlan, source: ByteSource, sink: ByteWriter | null, options: ExecuteOptions) {
    this.#plan = plan;
    this.#source = source;
    this.#sink = sink;
    this.#options = options;
    this.#hasher = new PlanHasher(plan.hashing.algorithm, options.digestSource ?? false);
    this.#signal = AbortSignal.any([options.signal, this.#stop.signal]);
  }

  async run(): Promise<PlanDigests> {
    this.#options.signal.throwIfAborted();
    const slots = Array.from({ length: MAX_CHUNKS_IN_FLIGHT }, (): Slot => ({ idle: Promise.resolve() }));
    let previousHashed = Promise.resolve();
    let next = 0;
    for (const chunk of chunksOf(this.#plan, CHUNK_SIZE_BYTES)) {
      const slot = itemAt(slots, next++ % MAX_CHUNKS_IN_FLIGHT);
      await slot.idle;
      const buffer = await this.#acquireBuffer(offsetInPage(chunk.position) + chunk.length);
      if (buffer === null) break;
      previousHashed = this.#start(chunk, slot, buffer, previousHashed);
    }
    for (const slot of slots) await slot.idle;
    if (this.#failure !== null) throw this.#failure.error;
    await this.#source.checkUnchanged?.(this.#options.signal);
    return this.#hasher.digests();
  }

  /** Returns null where a step failed or the signal is aborted. */
  async #acquireBuffer(sizeBytes: number): Promise<Buffer | null> {
    let buffer: Buffer | null = null;
    await this.#guard(async () => {
      buffer = await bufferPool.acquire(sizeBytes, this.#signal);
    });
    return buffer;
  }

  /** Starts a chunk in a slot. The promise resolves when it is hashed, so that the next chunk can be. */
  #start(chunk: PlanChunk, slot: Slot, buffer: Buffer, previousHashed: Promise<void>): Promise<void> {
    // Direct I/O requires that bytes have the same offset in their page of memory as in their page of the file.
    const start = offsetInPage(chunk.position);
    const bytes = buffer.subarray(start, start + chunk.length);
    const filled = this.#guard(() => this.#fill(chunk, bytes, slot));
    const written = filled.then(() => this.#guard(() => this.#write(chunk, bytes)));
    const hashed = Promise.all([filled, previousHashed]).then(() => this.#guard(() => this.#hasher.add(chunk, bytes)));
    slot.idle = Promise.all([written, hashed]).then(() => this.#release(buffer));
    return hashed;
  }

  /** Releases a buffer, or discards it after a failure: an aborted read may still write into it. */
  #release(buffer: Buffer): void {
    if (this.#failure === null) bufferPool.release(buffer);
    else bufferPool.discard(buffer);
  }

  /** Runs a step unless an earlier one failed. Keeps the first failure; never rejects. */
  async #guard(step: () => Promise<void> | void): Promise<void> {
    if (this.#failure !== null) return;
    try {
      this.#signal.throwIfAborted();
      await step();
    } catch (error) {
      this.#failure ??= { error };
      this.#stop.abort(error);
    }
  }

  async #fill(chunk: PlanChunk, bytes: Buffer, slot: Slot): Promise<void> {
    for (const read of readsOf(chunk.copies, CHUNK_SIZE_BYTES)) await this.#read(read, bytes, slot);
    for (const { bytes: inserted, at } of chunk.inserts) bytes.set(inserted, at);
  }

  async #read(read: ChunkRead, bytes: Buffer, slot: Slot): Promise<void> {
    const target = targetOf(read);
    if (target !== null) {
      await this.#source.read(bytes.subarray(target, target + read.length), read.offset, this.#signal);
      moveOtherCopies(read, bytes, target);
      return;
    }
    slot.readBuffer ??= Buffer.allocUnsafeSlow(Math.min(CHUNK_SIZE_BYTES, this.#source.sizeBytes));
    const window = slot.readBuffer.subarray(0, read.length);
    await this.#source.read(window, read.offset, this.#signal);
    for (const { offset, length, at } of read.copies) {
      bytes.set(window.subarray(offset - read.offset, offset - read.offset + length), at);
    }
  }

  async #write(chunk: PlanChunk, bytes: Buffer): Promise<void> {
    if (chunk.length === 0) return;
    await this.#sink?.write(bytes, chunk.position, this.#signal);
    this.#bytesDone += chunk.length;
    this.#options.onProgress?.(this.#bytesDone);
  }
}

/**
 * Returns the position in the chunk to read to, so that the copy that is most of the read is in its final position. A
 * fragment, whose Merkle box is inserted near its start, then needs no second buffer of its size. Returns null where no
 * copy is most of the read, or the read would exceed the range of its copies.
 */
function targetOf({ offset, length, copies }: ChunkRead): number | null {
  const most = copies.find((copy) => copy.length * 2 > length);
  const [first, last] = [copies[0], copies.at(-1)];
  if (most === undefined || first === undefined || last === undefined) return null;
  const target = most.at - (most.offset - offset);
  return target >= first.at && target + length <= last.at + last.length ? target : null;
}

/**
 * Moves the copies of a read that are not in their final position. All are taken out first, because
 * the positions overlap.
 */
function moveOtherCopies({ offset, copies }: ChunkRead, bytes: Buffer, target: number): void {
  const rest = copies
    .filter((copy) => copy.at !== target + copy.offset - offset)
    .map((copy) => {
      const start = target + copy.offset - offset;
      return { at: copy.at, taken: Uint8Array.from(bytes.subarray(start, start + copy.length)) };
    });
  for (const { at, taken } of rest) bytes.set(taken, at);
}

/**
 * Hashes of one execution. They are computed on this thread, while the thread pool reads and writes: Web Crypto would
 * digest leaves on the pool, but copies each one first, and was no faster on two cores (1.2 GB, medians of 12).
 */
class PlanHasher {
  readonly #algorithm: HashAlgorithm;
  readonly #flat: Hash;
  readonly #leaves: Uint8Array[] = [];
  /** Hash of the current leaf. */
  #leaf: Hash | null = null;
  readonly #source: Hash | null;

  /** Hashes the source bytes, too, where `digestsSource` is set. */
  constructor(algorithm: HashAlgorithm, digestsSource: boolean) {
    this.#algorithm = algorithm;
    this.#flat = createHash(algorithm);
    this.#source = digestsSource ? createHash('sha256') : null;
  }

  /** Adds a chunk. Chunks must come in plan order. */
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

  /** Returns the digests of all chunks. May be called once. */
  digests(): PlanDigests {
    return {
      flat: this.#flat.digest(),
      leaves: this.#leaves,
      ...(this.#source !== null && { source: this.#source.digest() }),
    };
  }
}

/** Hashes the source bytes of a chunk in output order. */
function addSourceOf({ copies, inserts }: PlanChunk, bytes: Uint8Array, hash: Hash): void {
  const copied = copies.map(({ at, length }) => ({ at, piece: bytes.subarray(at, at + length) }));
  const replaced = inserts.flatMap(({ at, original }) => (original === undefined ? [] : [{ at, piece: original }]));
  for (const { piece } of [...copied, ...replaced].sort((first, second) => first.at - second.at)) hash.update(piece);
}
