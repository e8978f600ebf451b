import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import type { OwnAddress } from '../../../scripts/own-address.ts';
import { until } from '../jobs/test-jobs.ts';

export interface ReceivedCallback {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver of callbacks that keeps what it is sent. */
export interface CallbackReceiver {
  readonly url: string;
  readonly received: ReceivedCallback[];
  /** Settles when so many callbacks have come. */
  came(count: number): Promise<void>;
}

/** Starts a receiver. `answer` is called with every request when its body is there; by default it answers 200. */
export async function startReceiver(
  t: TestContext,
  answer: RequestListener = (_request, response) => void response.end(),
  address: OwnAddress = { host: '127.0.0.1', port: 0 },
): Promise<CallbackReceiver> {
  const received: ReceivedCallback[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    received.push({ path: request.url ?? '', headers: request.headers, body });
    answer(request, response);
  });
  server.listen(address);
  await once(server, 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://${address.host}:${(server.address() as AddressInfo).port}`,
    received,
    came: (count) => until(() => received.length >= count),
  };
}
