import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { OwnAddress } from '../../../scripts/own-address.ts';

/** A connection to a server that the test can take away. */
export interface UnreliableProxy {
  /** Returns the address of a database by way of the proxy. */
  through(url: string): string;
  /** Nothing gets through any more, and nobody is told: a partition of the network. */
  freeze(): void;
  /** Lets delayed bytes through, and everything after them. */
  heal(): void;
  /** Cuts every connection. */
  cut(): void;
}

/** Stands before a server on this host, until the test ends. */
export async function startProxy(
  t: { after(tearDown: () => void): void },
  server: OwnAddress,
): Promise<UnreliableProxy> {
  const sockets = new Set<Socket>();
  let frozen = false;
  const add = (socket: Socket) => {
    sockets.add(socket);
    if (frozen) socket.pause();
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
  };
  const proxy = createServer((client) => {
    const upstream = connect(server);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      from.on('data', (chunk) => to.write(chunk));
      from.on('close', () => to.destroy());
      add(from);
    }
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  assert(typeof address === 'object' && address !== null);
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  t.after(() => {
    proxy.close();
    cut();
  });
  return {
    through: (url) => Object.assign(new URL(url), { host: `${address.address}:${address.port}` }).href,
    freeze: () => {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    heal: () => {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    cut,
  };
}
