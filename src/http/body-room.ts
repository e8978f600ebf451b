import type { FastifyInstance } from 'fastify';
import { AppError } from '#errors/app-error.ts';

/** Bodies up to this size are always received: hundreds of inputs fit in. */
const SMALL_BODY_BYTES = 64 * 1024;

/** So many bytes of larger bodies lie in memory at once, whoever sends them and however slowly. */
const LARGE_BODIES_BYTES = 64 * 1024 * 1024;

/**
 * Bounds what bodies take while they are received, by what they announce: refused with 503 is one for which there is no
 * room just now. One alone has room, whatever `maxBodyBytes` is.
 */
export function boundLargeBodies(app: FastifyInstance, maxBodyBytes: number): void {
  const boundBytes = Math.max(LARGE_BODIES_BYTES, maxBodyBytes);
  let heldBytes = 0;
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
    const announcedBytes = coding === undefined ? Number(length) : maxBodyBytes;
    // What is over the cap is refused without being kept.
    if (announcedBytes <= SMALL_BODY_BYTES || announcedBytes > maxBodyBytes) return done();
    if (heldBytes + announcedBytes > boundBytes) return done(new AppError('BODIES_TOO_LARGE_TOGETHER', {}));
    heldBytes += announcedBytes;
    // Emitted when the body was read whole, and when the client hangs up before.
    request.raw.once('close', () => {
      heldBytes -= announcedBytes;
    });
    done();
  });
}
