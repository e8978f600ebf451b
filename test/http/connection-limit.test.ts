import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { serve } from '../support/servers/serve.ts';

test('connections are bounded: more are closed as they come, which is logged once', async () => {
  await using server = await serve();
  const { hostname, port } = new URL(server.base);
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  };
  assert.equal(server.app.server.maxConnections, 10_000);
  server.app.server.maxConnections = 1;

  const first = await open();
  // Answered, so that the server has seen it.
  first.write('GET /v2/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(first, 'data');
  for (let count = 0; count < 3; count += 1) {
    const refused = await open();
    refused.resume();
    await once(refused, 'close');
  }
  first.write('GET /v2/health HTTP/1.1\r\nHost: x\r\n\r\n');
  await once(first, 'data');
  first.destroy();
  assert.equal(server.logged.filter((line) => line.includes('connections are refused')).length, 1);
});
