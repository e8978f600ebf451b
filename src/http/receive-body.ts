import type { Readable } from 'node:stream';
import { AppError } from '#errors/app-error.ts';

/** A body that announces no length gets so much room at first; it doubles. */
const FIRST_ROOM_BYTES = 4 * 1024;

/**
 * Receives a body into one buffer. However small the pieces are that it comes in, it takes at most twice its size in memory: a
 * client may send 8 MB byte by byte, and kept as pieces these would take gigabytes. Throws BODY_TOO_LARGE; what is still to
 * come is then read and thrown away, so that the client lives to see its answer.
 */
export async function receiveBody(payload: Readable, announcedBytes: number, maxBytes: number): Promise<Buffer> {
  try {
    if (announcedBytes > maxBytes) throw new AppError('BODY_TOO_LARGE', { limitBytes: maxBytes });
    return await gather(payload, maxBytes);
  } catch (error) {
    payload.resume();
    throw error;
  }
}

async function gather(payload: Readable, limitBytes: number): Promise<Buffer> {
  let body: Buffer = Buffer.allocUnsafeSlow(FIRST_ROOM_BYTES);
  let length = 0;
  // A request that is destroyed takes its connection along, and the answer with it.
  for await (const piece of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    const neededBytes = length + piece.length;
    if (neededBytes > limitBytes) throw new AppError('BODY_TOO_LARGE', { limitBytes });
    if (neededBytes > body.length) body = enlarged(body, Math.max(neededBytes, body.length * 2));
    piece.copy(body, length);
    length = neededBytes;
  }
  return body.subarray(0, length);
}

function enlarged(body: Buffer, roomBytes: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(roomBytes);
  body.copy(larger);
  return larger;
}
