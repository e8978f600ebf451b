import type { Socket } from 'node:net';

/** A frame is the size of its body and a number, both of 32 bits, little-endian, and the body. */
const HEADER_BYTES = 8;

/** What the end of the channel does with a frame. The body is valid only during the call where it is not copied. */
export type TakeFrame = (id: number, body: Buffer) => void;

/** Sends a frame. `sent` is called when the system has taken it, or never will. */
export function sendFrame(socket: Socket, id: number, body: Uint8Array, sent?: () => void): void {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + body.length);
  frame.writeUInt32LE(body.length, 0);
  frame.writeUInt32LE(id, 4);
  frame.set(body, HEADER_BYTES);
  socket.write(frame, sent);
}

/** Takes frames as they come. A peer whose frame is larger than the limit breaks the protocol, and is disconnected. */
export function receiveFrames(socket: Socket, maxBodyBytes: number, take: TakeFrame): void {
  let rest: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    while (rest.length >= HEADER_BYTES) {
      const sizeBytes = rest.readUInt32LE(0);
      if (sizeBytes > maxBodyBytes) return void socket.destroy();
      const endOffset = HEADER_BYTES + sizeBytes;
      if (rest.length < endOffset) return;
      take(rest.readUInt32LE(4), rest.subarray(HEADER_BYTES, endOffset));
      rest = rest.subarray(endOffset);
    }
  });
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
