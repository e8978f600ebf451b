import assert from 'node:assert/strict';
import type { Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectS3, type S3Settings } from '#s3/s3-connection.ts';

/** The part of the SDK's handler of requests that is used here. It has an agent from its first request on. */
interface NodeHandler {
  httpHandlerConfigs(): { readonly httpAgent: Agent };
}

/** Time between two time-outs, in milliseconds: of a long one, the SDK takes notice only 3 s after a request began. */
const INTERVAL_MS = 20;

/**
 * Has the idle time-out of the client for these settings pass, whatever its length, on every socket that serves a request,
 * or on the one whose local port is given. Resolves when they are closed.
 */
export async function expireSockets(settings: S3Settings, port?: number): Promise<void> {
  const { client } = await connectS3(settings);
  const { httpAgent } = (client.config.requestHandler as unknown as NodeHandler).httpHandlerConfigs();
  const inUse = Object.values(httpAgent.sockets).flatMap((sockets = []) => sockets);
  const expired = inUse.filter(({ localPort }) => port === undefined || localPort === port);
  assert.notEqual(expired.length, 0, 'there is no such socket');
  while (!expired.every(({ destroyed }) => destroyed)) {
    for (const socket of expired) socket.emit('timeout');
    await sleep(INTERVAL_MS);
  }
}
