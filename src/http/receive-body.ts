import { finished, type Readable } from 'node:stream';
import { AppError } from '#errors/app-error.ts';
import type { BodyLease } from './request-body-limit.ts';

/** The size of the first buffer of a body; it doubles as the body arrives. */
const MIN_BUFFER_BYTES = 4 * 1024;

/** How large a body may be, and what counts it. */
export interface BodyBounds {
  /** What its `Content-Length` says; 0 where it has none. */
  readonly announcedBytes: number;
  readonly maxBytes: number;
  readonly lease: BodyLease;
}

/**
 * Receives a body into one buffer. However small the pieces are that it comes in, it takes at most twice its size in memory: a
 * client may send 8 MB byte by byte, and kept as pieces these would take gigabytes. Throws BODY_TOO_LARGE, and
 * BODIES_TOO_LARGE_TOGETHER; what is still to come is then read and thrown away, so that the client lives to see its answer.
 */
export async function receiveBody(payload: Readable, bounds: BodyBounds): Promise<Buffer> {
  const { announcedBytes, maxBytes, lease } = bounds;
  try {
    if (announcedBytes > maxBytes) throw new AppError('BODY_TOO_LARGE', { limitBytes: maxBytes });
    return await gather(payload, bounds);
  } catch (error) {
    lease.release();
    payload.resume();
    throw error;
  } finally {
    lease.refuse = null;
  }
}

function gather(payload: Readable, { announcedBytes, maxBytes, lease }: BodyBounds): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let body: Buffer = Buffer.alloc(0);
  let length = 0;
  const take = (piece: Buffer): void => {
    const neededBytes = length + piece.length;
    lease.arrived(piece.length);
    try {
      if (neededBytes > maxBytes) throw new AppError('BODY_TOO_LARGE', { limitBytes: maxBytes });
      if (neededBytes > body.length) body = enlarged(body, neededBytes, announcedBytes, lease);
    } catch (error) {
      return stop(error);
    }
    piece.copy(body, length);
    length = neededBytes;
  };
  const ignoreEnd = finished(payload, { writable: false }, (error) => {
    if (error) stop(error);
    else resolve(body.subarray(0, length));
  });
  const stop = (error: unknown): void => {
    // Not destroyed: that takes the connection along, and the answer with it.
    payload.off('data', take);
    ignoreEnd();
    body = Buffer.alloc(0);
    reject(error);
  };
  lease.refuse = stop;
  payload.on('data', take);
  return promise;
}

/** Counts what the next buffer takes before it is made. */
function enlarged(body: Buffer, neededBytes: number, announcedBytes: number, lease: BodyLease): Buffer {
  const doubled = Math.max(MIN_BUFFER_BYTES, neededBytes, body.length * 2);
  const sizeBytes = announcedBytes >= neededBytes ? Math.min(doubled, announcedBytes) : doubled;
  lease.grow(sizeBytes);
  const larger = Buffer.allocUnsafeSlow(sizeBytes);
  body.copy(larger);
  return larger;
}
