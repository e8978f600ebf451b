import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** A request as a test server saw it. */
export interface SeenRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly range: string | undefined;
}

/** A server of the tests' own on loopback, which does whatever the test wants of it. */
export interface TestServer {
  /** `http://127.0.0.1:<port>`. */
  readonly base: string;
  readonly port: number;
  readonly seen: readonly SeenRequest[];
  /** Connections that are open now. */
  readonly connections: ReadonlySet<Socket>;
  close(): Promise<void>;
}

/** Starts a server that answers with `listener`; the test ends it. */
export async function startServer(listener: RequestListener): Promise<TestServer> {
  const seen: SeenRequest[] = [];
  const connections = new Set<Socket>();
  const server = createServer((request, response) => {
    seen.push({ method: request.method ?? '', path: request.url ?? '', range: request.headers.range });
    listener(request, response);
  });
  server.on('connection', (socket) => {
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    base: `http://127.0.0.1:${port}`,
    port,
    seen,
    connections,
    close: async () => {
      for (const socket of connections) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Starts a server that ends with the test. */
export async function serve(t: TestContext, listener: RequestListener): Promise<TestServer> {
  const server = await startServer(listener);
  t.after(() => server.close());
  return server;
}

/** Options of how a file is served; each leaves out a part of what a good server does. */
export interface ServedFile {
  readonly content: Buffer;
  /** `"1"` unless given; null: none is sent. */
  readonly etag?: string | null;
  readonly lastModified?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** False where the server ignores ranges. */
  readonly ranges?: boolean;
  /** The most that is given of a range, in bytes. */
  readonly largestPart?: number;
  /** False where the length of a whole file is not sent. */
  readonly length?: boolean;
  /** False where a range does not state the size of the whole file. */
  readonly wholeSize?: boolean;
  /** False where `If-Range` is ignored. */
  readonly ifRange?: boolean;
}

/** Answers a request for a file as RFC 9110 has it, ranges and `If-Range` included. */
export function sendFile(request: IncomingMessage, response: ServerResponse, file: ServedFile): void {
  const { part, ...head } = answerFor(request, file);
  response.writeHead(head.status, head.headers);
  response.end(part);
}

/** The parts of the answer to a request for a file. */
export function answerFor(
  request: IncomingMessage,
  {
    content,
    etag = '"1"',
    lastModified,
    headers,
    ranges = true,
    ifRange = true,
    length = true,
    wholeSize = true,
    largestPart,
  }: ServedFile,
): { status: number; headers: Record<string, string>; part: Buffer } {
  const common = {
    ...(etag !== null && { etag }),
    ...(lastModified !== undefined && { 'last-modified': lastModified }),
    ...headers,
  };
  const condition = request.headers['if-range'];
  const holds = !ifRange || condition === undefined || condition === etag || condition === lastModified;
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
  if (!ranges || !holds || first === undefined) {
    const told = length ? { 'content-length': String(content.length) } : {};
    return { status: 200, headers: { ...common, ...told }, part: content };
  }
  const start = Number(first);
  if (start >= content.length) {
    return { status: 416, headers: { ...common, 'content-range': `bytes */${content.length}` }, part: Buffer.alloc(0) };
  }
  const part = content.subarray(start, Number(last) + 1).subarray(0, largestPart);
  const range = `bytes ${start}-${start + part.length - 1}/${wholeSize ? content.length : '*'}`;
  return {
    status: 206,
    headers: { ...common, 'content-range': range, 'content-length': String(part.length) },
    part,
  };
}
