import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { AppError } from '#errors/app-error.ts';

/** Answers up to this size are always sent: the results of hundreds of inputs fit in. */
const SMALL_ANSWER_BYTES = 64 * 1024;

/** So many bytes of larger answers wait for their clients at once, however slowly these read. */
const LARGE_ANSWERS_BYTES = 64 * 1024 * 1024;

/** A large answer that was not taken after so long is given up, and its connection with it. */
const TAKEN_WITHIN_MS = 120_000;

/** Bounds what answers take in memory that clients ask for and do not read: a job of 10,000 inputs is megabytes. */
export class AnswerRoom {
  #heldBytes = 0;

  /** Takes room for an answer until it was sent or given up; false where there is none just now. One alone has room. */
  hold(response: ServerResponse, sizeBytes: number): boolean {
    if (sizeBytes <= SMALL_ANSWER_BYTES) return true;
    if (this.#heldBytes > 0 && this.#heldBytes + sizeBytes > LARGE_ANSWERS_BYTES) return false;
    this.#heldBytes += sizeBytes;
    const late = setTimeout(() => response.destroy(), TAKEN_WITHIN_MS).unref();
    response.once('close', () => {
      clearTimeout(late);
      this.#heldBytes -= sizeBytes;
    });
    return true;
  }
}

/** Refuses with 503 what there is no room for. Streams are not counted here: they are made as they are read. */
export function boundLargeAnswers(app: FastifyInstance, room: AnswerRoom): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    const sizeBytes = typeof payload === 'string' ? Buffer.byteLength(payload) : 0;
    if (room.hold(reply.raw, sizeBytes)) done(null, payload);
    else done(new AppError('ANSWERS_TOO_LARGE_TOGETHER', {}));
  });
}
