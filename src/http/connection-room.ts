import type { FastifyInstance } from 'fastify';

/** Connections at once. One that waits takes 10 kB; every job followed and every synchronous wait holds one. */
const MAX_CONNECTIONS = 10_000;

/** Refused connections are logged so often at most. */
const LOG_INTERVAL_MS = 60_000;

/** Bounds the connections of the server: more are closed as they come. */
export function boundConnections(app: FastifyInstance): void {
  let quietUntilMs = 0;
  app.server.maxConnections = MAX_CONNECTIONS;
  app.server.on('drop', () => {
    if (performance.now() < quietUntilMs) return;
    quietUntilMs = performance.now() + LOG_INTERVAL_MS;
    app.log.warn({ connections: app.server.maxConnections }, 'connections are refused: no more are taken at once');
  });
}
