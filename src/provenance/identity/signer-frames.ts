import type { Socket } from 'node:net';

/** A frame is the size of its body and a number, both of 32 bits, little-endian, and the body. */
const HEADER_BYTES = 8;

/** Sends a frame. `sent` is called when the system has taken it, or never will. */
export function sendFrame(socket: Socket, id: number, body: Uint8Array, sent?: () => void): void {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  frame.writeUInt32LE(body.length, 0);
  frame.writeUInt32LE(id, 4);
  frame.set(body, HEADER_BYTES);
  socket.write(frame, sent);
}

/** Bytes that were received and not taken yet, from which on no more are read from the peer. */
const MAX_BUFFERED_BYTES = 256 * 1024;

/** Frames of one peer that are taken before other peers get their turn. */
const FRAMES_PER_TURN = 16;

/**
 * Takes frames as they come, one after the other: the next when `take` has returned, or its promise has resolved. No more
 * than `MAX_BUFFERED_BYTES` and one frame are kept meanwhile, and other work of the process is let in between. A peer whose
 * frame is larger than the limit breaks the protocol, and is disconnected.
 */
export function receiveFrames(socket: Socket, maxBodyBytes: number, take: (id: number, body: Buffer) => unknown): void {
  const frames = new FrameReader(maxBodyBytes);
  const chunks: Buffer[] = [];
  let bufferedBytes = 0;
  let isTaking = false;
  const takeAll = async (): Promise<void> => {
    isTaking = true;
    for (let taken = 0, chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
      for (const { id, body } of frames.read(chunk)) {
        const under = take(id, body);
        if (under instanceof Promise) await under;
        taken += 1;
        if (taken % FRAMES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      bufferedBytes -= chunk.length;
      if (bufferedBytes < MAX_BUFFERED_BYTES) socket.resume();
    }
    isTaking = false;
  };
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    bufferedBytes += chunk.length;
    if (bufferedBytes >= MAX_BUFFERED_BYTES) socket.pause();
    if (!isTaking) takeAll().catch((error: Error) => socket.destroy(error));
  });
}

/** Puts frames together from chunks of any size. Every byte is copied at most once. */
class FrameReader {
  readonly #maxBodyBytes: number;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #body: Buffer | null = null;
  #bodyBytes = 0;

  constructor(maxBodyBytes: number) {
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Yields the frames that end in a chunk. Throws where one is larger than the limit. */
  *read(chunk: Buffer): Generator<{ readonly id: number; readonly body: Buffer }> {
    let offset = 0;
    while (offset < chunk.length) {
      if (this.#body === null) offset += this.#readHeader(chunk, offset);
      if (this.#body === null) return;
      const copied = chunk.copy(this.#body, this.#bodyBytes, offset);
      this.#bodyBytes += copied;
      offset += copied;
      if (this.#bodyBytes < this.#body.length) return;
      yield { id: this.#header.readUInt32LE(4), body: this.#body };
      this.#body = null;
      this.#headerBytes = 0;
    }
  }

  /** Returns how many bytes of the chunk belong to the header. */
  #readHeader(chunk: Buffer, offset: number): number {
    const copied = chunk.copy(this.#header, this.#headerBytes, offset);
    this.#headerBytes += copied;
    if (this.#headerBytes < HEADER_BYTES) return copied;
    const sizeBytes = this.#header.readUInt32LE(0);
    if (sizeBytes > this.#maxBodyBytes) throw new Error(`a frame of ${sizeBytes} bytes is over the limit`);
    this.#body = Buffer.allocUnsafe(sizeBytes);
    this.#bodyBytes = 0;
    return copied;
  }
}

/**
 * Stops reading from a channel that is handed on to another process. Node goes on reading until the other process has
 * taken it, and would swallow what comes meanwhile; it has no public way to stop that.
 */
export function stopReading(channel: Socket): Socket {
  const { _handle: handle } = channel as Socket & { _handle: { reading: boolean; readStop(): void } | null };
  if (handle === null) return channel;
  handle.reading = false;
  handle.readStop();
  return channel;
}

/** The largest piece of data that is signed: a COSE `Sig_structure`, which holds the claim and the certificates. */
export const MAX_SIGNED_BYTES = 8 * 1024 * 1024;

/** The largest answer: a signature, or why there is none. */
export const MAX_ANSWER_BYTES = 64 * 1024;

/** The first byte of an answer. */
export const ANSWER = { signature: 0, failure: 1 } as const;
