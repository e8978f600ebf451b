import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** Starts a server that speaks no HTTP, or HTTP in its own way, until the test ends: its port on this host. */
export async function speak(t: TestContext, listener: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    listener(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}
