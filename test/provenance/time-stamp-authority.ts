import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What the authority does with its next queries; `stale` answers with an earlier answer. */
export type Behaviour =
  | 'answering'
  | 'silent'
  | 'endless'
  | 'stalling'
  | 'refusing'
  | 'garbage'
  | 'hanging-up'
  | 'stale';

/** A time-stamp authority over HTTP whose answers are made by `openssl ts`. */
export interface FakeAuthority {
  readonly url: string;
  behave(behaviour: Behaviour): void;
  queryCount(): number;
  /** Settles when the next query has arrived. */
  nextQuery(): Promise<void>;
  close(): void;
}

const CONFIGURATION = `
[tsa]
serial = serial
signer_cert = tsa.pem
certs = root.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256, sha384, sha512
ess_cert_id_alg = sha256
`;

const EXTENSIONS = `
extendedKeyUsage = critical, timeStamping
keyUsage = critical, digitalSignature
basicConstraints = critical, CA:FALSE
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`;

export async function startAuthority(): Promise<FakeAuthority> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tsa-'));
  await makeAuthority(folder);
  let behaviour: Behaviour = 'answering';
  let queries = 0;
  let arrived = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    queries += 1;
    arrived.resolve();
    arrived = Promise.withResolvers<void>();
    answer(folder, behaviour, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tsa`,
    behave: (next) => {
      behaviour = next;
    },
    queryCount: () => queries,
    nextQuery: () => arrived.promise,
    close: () => {
      server.close();
      server.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function makeAuthority(folder: string): Promise<void> {
  writeFileSync(path.join(folder, 'tsa.cnf'), CONFIGURATION);
  writeFileSync(path.join(folder, 'tsa.ext'), EXTENSIONS);
  writeFileSync(path.join(folder, 'serial'), '01\n');
  const openssl = (command: string): Promise<unknown> => run('openssl', command.split(' '), { cwd: folder });
  await openssl('req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -days 2 -subj /O=Test/CN=TSA-Root');
  await openssl('req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /O=Test/CN=TSA');
  await openssl(
    'x509 -req -in tsa.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile tsa.ext -out tsa.pem',
  );
}

async function answer(
  folder: string,
  behaviour: Behaviour,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const query = await buffer(request);
  const head = { 'content-type': 'application/timestamp-reply' };
  switch (behaviour) {
    case 'answering':
      response.writeHead(200, head).end(await stamp(folder, query));
      return;
    case 'stale':
      response.writeHead(200, head).end(readFileSync(path.join(folder, 'reply.tsr')));
      return;
    case 'garbage':
      response.writeHead(200, head).end('this is no time-stamp');
      return;
    case 'refusing':
      response.writeHead(503).end();
      return;
    case 'hanging-up':
      response.destroy();
      return;
    case 'stalling':
      response.writeHead(200, { ...head, 'content-length': 5000 }).write('x');
      return;
    case 'endless':
      sendWithoutEnd(response.writeHead(200, head));
      return;
    case 'silent':
  }
}

function sendWithoutEnd(response: ServerResponse): void {
  const send = (): void => {
    if (!response.destroyed) response.write(Buffer.alloc(4096), send);
  };
  response.on('error', () => undefined);
  send();
}

async function stamp(folder: string, query: Buffer): Promise<Buffer> {
  writeFileSync(path.join(folder, 'query.tsq'), query);
  const command = 'ts -reply -config tsa.cnf -section tsa -queryfile query.tsq -out reply.tsr';
  await run('openssl', command.split(' '), { cwd: folder });
  return readFileSync(path.join(folder, 'reply.tsr'));
}
