import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { AppError } from '#errors/app-error.ts';

/** Bodies up to this size are always received: hundreds of inputs fit in. */
const SMALL_BODY_BYTES = 64 * 1024;

/** So many bytes of larger bodies are in hand at once, whoever sends them and however slowly. */
const LARGE_BODIES_BYTES = 64 * 1024 * 1024;

/** What gives back the room of a large body. */
const roomOf = new WeakMap<IncomingMessage, () => void>();

/**
 * Bounds what bodies take while they are received, checked and recorded, by what they announce: refused with 503 is one
 * for which there is no room just now. One alone has room, whatever `maxBodyBytes` is. It is given back with the answer,
 * or by `letGoOfBody`.
 */
export function boundLargeBodies(app: FastifyInstance, maxBodyBytes: number): void {
  const boundBytes = Math.max(LARGE_BODIES_BYTES, maxBodyBytes);
  let heldBytes = 0;
  app.addHook('preParsing', (request, reply, _payload, done) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    const announcedBytes = coding === undefined ? Number(length) : maxBodyBytes;
    // What is over the cap is refused without being kept.
    if (announcedBytes <= SMALL_BODY_BYTES || announcedBytes > maxBodyBytes) return done();
    if (heldBytes + announcedBytes > boundBytes) return done(new AppError('BODIES_TOO_LARGE_TOGETHER', {}));
    heldBytes += announcedBytes;
    roomOf.set(request.raw, () => {
      heldBytes -= announcedBytes;
    });
    // Emitted when the answer was sent, and when the client hangs up before.
    reply.raw.once('close', () => letGoOfBody(request));
    done();
  });
}

/** For a request that goes on without its body: neither is it kept, nor the room that it took. */
export function letGoOfBody(request: FastifyRequest): void {
  request.body = undefined;
  roomOf.get(request.raw)?.();
  roomOf.delete(request.raw);
}
