import { createHash } from 'node:crypto';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { chunkBuffers } from '#bytes/chunk-buffers.ts';

/** What hashing a finished file again found. */
export interface RehashedFile {
  /** The `c2pa.hash.bmff.v3` digest of the file. */
  readonly digest: Uint8Array;
  /** The contents of its C2PA boxes by purpose, in order. */
  readonly c2pa: readonly { readonly purpose: string; readonly content: Buffer }[];
}

/** Size of one read in bytes. */
const READ_SIZE_BYTES = 1024 * 1024;
const C2PA_UUID = 'd8fec3d61b0e483c92975828877ec481';
/** A manifest larger than this is none of ours. */
const C2PA_BOX_MAX_BYTES = 128 * 1024 * 1024;

/**
 * Hashes a finished file from its bytes alone: every top-level box but C2PA's, ftyp and mfra, each behind its offset.
 * This shares no code with the way the file was made, so that a mistake there does not repeat itself here.
 */
export async function rehashFile(source: ByteSource, algorithm: string, signal: AbortSignal): Promise<RehashedFile> {
  const buffer = await chunkBuffers.take(Math.min(READ_SIZE_BYTES, source.sizeBytes), signal);
  try {
    const rehashed = await rehashThrough(new SlidingWindow(source, buffer, signal), source.sizeBytes, algorithm);
    chunkBuffers.giveBack(buffer);
    return rehashed;
  } catch (error) {
    // A read that was given up may yet write into it.
    chunkBuffers.forgo(buffer);
    throw error;
  }
}

async function rehashThrough(window: SlidingWindow, sizeBytes: number, algorithm: string): Promise<RehashedFile> {
  const hash = createHash(algorithm);
  const c2pa: { purpose: string; content: Buffer }[] = [];
  let offset = 0;
  while (offset < sizeBytes) {
    const left = sizeBytes - offset;
    const head = await window.read(offset, Math.min(24, left));
    const size = left < 8 ? left : boxSize(head, left);
    const type = left < 8 ? '' : head.toString('latin1', 4, 8);
    if (type === 'uuid' && head.toString('hex', 8, 24) === C2PA_UUID) {
      c2pa.push(readPurpose(await window.read(offset + 28, Math.min(size - 28, C2PA_BOX_MAX_BYTES))));
    } else if (type !== 'ftyp' && type !== 'mfra') {
      if (type !== '') hash.update(offsetBytes(offset));
      for (let at = offset; at < offset + size; at += READ_SIZE_BYTES) {
        hash.update(await window.read(at, Math.min(READ_SIZE_BYTES, offset + size - at)));
      }
    }
    offset += size;
  }
  return { digest: hash.digest(), c2pa };
}

/** A box that does not fit takes what is left: its hash will tell. */
function boxSize(head: Buffer, left: number): number {
  const compact = head.readUInt32BE(0);
  const size = compact === 1 && head.length >= 16 ? Number(head.readBigUInt64BE(8)) : compact;
  return size < 8 || size > left ? left : size;
}

function readPurpose(bytes: Buffer): { purpose: string; content: Buffer } {
  const end = bytes.indexOf(0);
  return { purpose: bytes.toString('latin1', 0, Math.max(end, 0)), content: Buffer.from(bytes.subarray(end + 1)) };
}

function offsetBytes(offset: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(offset));
  return bytes;
}

/** Reads ahead, so that small files and small boxes cost one read. What it returns is valid until the next call. */
class SlidingWindow {
  readonly #source: ByteSource;
  readonly #buffer: Buffer;
  readonly #signal: AbortSignal;
  #bytes: Buffer = Buffer.alloc(0);
  #start = 0;

  constructor(source: ByteSource, buffer: Buffer, signal: AbortSignal) {
    this.#source = source;
    this.#buffer = buffer;
    this.#signal = signal;
  }

  async read(offset: number, length: number): Promise<Buffer> {
    if (offset < this.#start || offset + length > this.#start + this.#bytes.length) {
      await this.#fill(offset, Math.max(length, Math.min(READ_SIZE_BYTES, this.#source.sizeBytes - offset)));
      this.#start = offset;
    }
    return this.#bytes.subarray(offset - this.#start, offset - this.#start + length);
  }

  /** Only a large manifest is larger than the buffer. */
  async #fill(offset: number, length: number): Promise<void> {
    if (length > this.#buffer.length) {
      this.#bytes = await readRange(this.#source, offset, length, this.#signal);
      return;
    }
    this.#bytes = this.#buffer.subarray(0, length);
    await this.#source.read(this.#bytes, offset, this.#signal);
  }
}
