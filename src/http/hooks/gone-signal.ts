import type { FastifyReply } from 'fastify';

/** Returns the signal that is aborted when the client has its answer, or has hung up. */
export function goneSignal(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}
