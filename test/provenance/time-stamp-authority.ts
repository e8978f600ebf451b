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

/** The behaviour of the authority for its next queries. */
export type Behaviour =
  | 'answering'
  | 'silent'
  | 'endless'
  | 'stalling'
  | 'refusing'
  | 'garbage'
  | 'hanging-up'
  /** Answers as it did to an earlier query. */
  | 'stale'
  /** Answers with a page for people. */
  | 'html'
  /** Stamps another hash, or answers another nonce. */
  | 'other-hash'
  | 'other-nonce'
  /** Says that it gives no time-stamp, as RFC 3161 has it. */
  | 'rejecting'
  /** Sends more certificates than otherwise. */
  | 'larger'
  /** Answers once sixteen queries wait. */
  | 'gathering';

/** The number of queries that `gathering` waits for. */
export const CROWD = 16;

/** A time-stamp authority over HTTP whose answers are made by `openssl ts`. */
export interface FakeAuthority {
  readonly url: string;
  /** The certificate of its root, in PEM. */
  readonly root: Buffer;
  /** `onSilence` is called after each query that gets no answer, or a part of one. */
  behave(behaviour: Behaviour, onSilence?: () => void): void;
  queryCount(): number;
  lastAnswerBytes(): number;
  /** Settles when the next query has arrived. */
  nextQuery(): Promise<void>;
  close(): void;
}

const configuration = (certificates: string): string => `
[tsa]
serial = serial
signer_cert = tsa.pem
certs = ${certificates}
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
  let silenceListener = (): void => undefined;
  let queries = 0;
  const stamp = stampsOf(folder);
  let gathered = 0;
  const crowd = Promise.withResolvers<void>();
  let arrived = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    queries += 1;
    arrived.resolve();
    arrived = Promise.withResolvers<void>();
    if (behaviour === 'gathering' && ++gathered === CROWD) crowd.resolve();
    const ready = behaviour === 'gathering' ? crowd.promise : Promise.resolve();
    ready
      .then(() => answer(stamp, behaviour, request, response, silenceListener))
      .catch((error: unknown) => response.destroy(error as Error));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tsa`,
    root: readFileSync(path.join(folder, 'root.pem')),
    behave: (next, onSilence = () => undefined) => {
      behaviour = next;
      silenceListener = onSilence;
    },
    queryCount: () => queries,
    lastAnswerBytes: () => readFileSync(path.join(folder, 'reply.tsr')).length,
    nextQuery: () => arrived.promise,
    close: () => {
      server.close();
      server.closeAllConnections();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function makeAuthority(folder: string): Promise<void> {
  writeFileSync(path.join(folder, 'tsa.cnf'), configuration('root.pem'));
  writeFileSync(path.join(folder, 'larger.cnf'), configuration('many.pem'));
  writeFileSync(path.join(folder, 'tsa.ext'), EXTENSIONS);
  writeFileSync(path.join(folder, 'serial'), '01\n');
  const openssl = (command: string): Promise<unknown> => run('openssl', command.split(' '), { cwd: folder });
  await openssl('req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -days 2 -subj /O=Test/CN=TSA-Root');
  await openssl('req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /O=Test/CN=TSA');
  await openssl(
    'x509 -req -in tsa.csr -CA root.pem -CAkey root.key -CAcreateserial -days 2 -extfile tsa.ext -out tsa.pem',
  );
  await openssl('req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /O=Test/CN=Other');
  const certificates = ['root.pem', 'other.pem'].map((name) => readFileSync(path.join(folder, name)));
  writeFileSync(path.join(folder, 'many.pem'), Buffer.concat(certificates));
}

async function answer(
  stamp: Stamping,
  behaviour: Behaviour,
  request: IncomingMessage,
  response: ServerResponse,
  onSilence: () => void,
): Promise<void> {
  const query = await buffer(request);
  const head = { 'content-type': 'application/timestamp-reply' };
  switch (behaviour) {
    case 'answering':
    case 'gathering':
      response.writeHead(200, head).end(await stamp(query));
      return;
    case 'larger':
      response.writeHead(200, head).end(await stamp(query, 'larger.cnf'));
      return;
    case 'stale':
      response.writeHead(200, head).end(await stamp(null));
      return;
    case 'other-hash':
      // The last byte of the hash, an octet string of 32 bytes.
      response.writeHead(200, head).end(await stamp(changed(query, query.indexOf(Buffer.from([0x04, 0x20])) + 33)));
      return;
    case 'other-nonce':
      // The last byte of the nonce, which `certReq` follows: a tag, a length and a byte.
      response.writeHead(200, head).end(await stamp(changed(query, query.length - 4)));
      return;
    case 'rejecting':
      response.writeHead(200, head).end(await stamp(Buffer.from('no query')));
      return;
    case 'html':
      response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Please log in</h1>');
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
      response.writeHead(200, { ...head, 'content-length': 5000 }).write('x', onSilence);
      return;
    case 'endless':
      sendWithoutEnd(response.writeHead(200, head));
      return;
    case 'silent':
      onSilence();
  }
}

function sendWithoutEnd(response: ServerResponse): void {
  const send = (): void => {
    if (!response.destroyed) response.write(Buffer.alloc(4096), send);
  };
  response.on('error', () => undefined);
  send();
}

function changed(query: Buffer, position: number): Buffer {
  const copy = Buffer.from(query);
  copy[position] = (copy[position] ?? 0) ^ 1;
  return copy;
}

/** Answers a query; null repeats the answer before. */
type Stamping = (query: Buffer | null, configurationFile?: string) => Promise<Buffer>;

/** Returns a function that makes one time-stamp after the other, as `openssl ts` needs it. */
function stampsOf(folder: string): Stamping {
  let previous: Promise<unknown> = Promise.resolve();
  return (query, configurationFile = 'tsa.cnf') => {
    const next = previous.then(async () => {
      if (query !== null) {
        writeFileSync(path.join(folder, 'query.tsq'), query);
        const command = `ts -reply -config ${configurationFile} -section tsa -queryfile query.tsq -out reply.tsr`;
        await run('openssl', command.split(' '), { cwd: folder });
      }
      return readFileSync(path.join(folder, 'reply.tsr'));
    });
    previous = next.catch(() => undefined);
    return next;
  };
}
