import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The proxy answers in the server's place, as S3 does with an error document. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The body that is answered instead of an error document. */
  readonly body?: string;
}

/** A fault that meets a request on its way to the real server. */
export type Fault =
  | Refusal
  /** The request is taken, and never answered. */
  | { readonly silent: true }
  /** The connection is cut after so many bytes of the request's body, which never reach the server whole. */
  | { readonly cutAfterSentBytes: number }
  /** The request reaches the server, and the connection is cut before it is answered. */
  | { readonly unanswered: true }
  /** The connection is cut after so many bytes of the answer's body. */
  | { readonly cutAfterBytes: number }
  /** Nothing more is sent after so many bytes of the answer's body, and the connection stays. */
  | { readonly stallAfterBytes: number }
  /** The answer does not say which range it holds, as if it were the whole object. */
  | { readonly rangeUnsaid: true };

type AnswerFault = Exclude<Fault, Refusal | { readonly silent: true } | { readonly cutAfterSentBytes: number }>;

/** A proxy before a real S3 server that passes everything on, but for the requests that a test gives a fault. */
export interface FaultyProxy {
  readonly endpoint: string;
  /** Requests that came in, as `GET /bucket/key`. */
  readonly requests: string[];
  /** Decides about each request, which waits for a decision that is a promise; no fault by default. */
  fault: (incoming: IncomingMessage) => Fault | null | Promise<Fault | null>;
  close(): Promise<void>;
}

export async function startFaultyProxy(target: string): Promise<FaultyProxy> {
  const server = createServer(async (incoming, answer) => {
    proxy.requests.push(`${incoming.method} ${incoming.url?.split('?')[0]}`);
    const fault = await proxy.fault(incoming);
    if (fault !== null && 'status' in fault) return refuse(answer, fault);
    if (fault !== null && 'silent' in fault) return void incoming.resume();
    if (fault !== null && 'cutAfterSentBytes' in fault) return cutWithin(incoming, fault.cutAfterSentBytes);
    passOn(target, incoming, answer, fault);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const proxy: FaultyProxy = {
    endpoint: `http://127.0.0.1:${port}`,
    requests: [],
    fault: () => null,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
  return proxy;
}

function refuse(answer: ServerResponse, { status, code, headers, body }: Refusal): void {
  answer.writeHead(status, { 'content-type': 'application/xml', ...headers });
  answer.end(body ?? `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}

function cutWithin(incoming: IncomingMessage, limit: number): void {
  let takenBytes = 0;
  incoming.on('data', ({ length }: Buffer) => {
    takenBytes += length;
    if (takenBytes >= limit) incoming.socket.destroy();
  });
}

/** The `Host` header stays as it is: the signature covers it. */
function passOn(target: string, incoming: IncomingMessage, answer: ServerResponse, fault: AnswerFault | null): void {
  const { method, headers } = incoming;
  const { hostname, port } = new URL(target);
  const outgoing = request({ hostname, port, path: incoming.url, method, headers }, (answered) => {
    if (fault !== null && 'unanswered' in fault) {
      answered.resume();
      return void answer.destroy();
    }
    const isWhole = fault !== null && 'rangeUnsaid' in fault;
    if (isWhole) delete answered.headers['content-range'];
    answer.writeHead(isWhole ? 200 : (answered.statusCode ?? 502), answered.headers);
    answer.flushHeaders();
    void passBody(answered, answer, fault);
  });
  outgoing.on('error', () => answer.destroy());
  // A server waits for a minute for the rest of a request whose client went away.
  answer.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

async function passBody(answered: IncomingMessage, answer: ServerResponse, fault: AnswerFault | null): Promise<void> {
  const limit = limitOf(fault);
  let sent = 0;
  try {
    for await (const bytes of answered as AsyncIterable<Buffer>) {
      const part = bytes.subarray(0, limit - sent);
      sent += part.length;
      if (!answer.write(part)) await once(answer, 'drain');
      if (sent < limit) continue;
      if (fault !== null && 'cutAfterBytes' in fault) answer.destroy();
      return;
    }
    answer.end();
  } catch {
    // The client went away, or the server did: the other one is told by its connection's end.
    answer.destroy();
  }
}

function limitOf(fault: AnswerFault | null): number {
  if (fault !== null && 'cutAfterBytes' in fault) return fault.cutAfterBytes;
  if (fault !== null && 'stallAfterBytes' in fault) return fault.stallAfterBytes;
  return Number.POSITIVE_INFINITY;
}
