import { execFile, spawn } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { createKeySigner } from '#provenance/identity/key-signer.ts';
import type { Signer } from '#provenance/signer.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);

/** The statement of a response, or its lie; each is made by `openssl ocsp`. */
export type Answer =
  | 'good'
  | 'revoked'
  /** Revoked in the year 2030. */
  | 'revoked-later'
  | 'unknown'
  /** Ends within a minute. */
  | 'ending'
  | 'other-certificate'
  /** Signed by an authority that is not the issuer; and by a certificate of the issuer for something else. */
  | 'other-key'
  | 'unappointed';

/** The responder's fault in place of an answer. */
export type Fault = 'garbage' | 'try-later' | 'refusing' | 'redirecting' | 'huge' | 'silent' | 'hanging-up';

/** An authority made for tests, with a leaf, and its responder over HTTP. */
export interface TestResponder {
  readonly url: string;
  readonly leaf: X509Certificate;
  readonly issuer: X509Certificate;
  /** Signs with the leaf; the chain has the issuer, and ends before the root. */
  readonly signer: Signer;
  readonly certificatePath: string;
  readonly privateKeyPath: string;
  readonly rootPath: string;
  /** Returns a response as the responder would send it, for as many days. */
  respond(answer: Answer, days?: number): Promise<Buffer>;
  /** Bytes are sent as they are. */
  behave(behaviour: Answer | Fault | Buffer): void;
  queryCount(): number;
  close(): void;
}

const extensionsFor = (url: string): string => `
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = emailProtection, 1.3.6.1.4.1.62558.2.1
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
${url === '' ? '' : `authorityInfoAccess = OCSP;URI:${url}`}
[responder]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, OCSPSigning
noCheck = yes
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
`;

/** Starts a responder: one that behaves as it is told, or `openssl ocsp` itself, which says good. */
export async function startResponder({ isOpenssl = false } = {}): Promise<TestResponder> {
  const folder = temporaryFolder();
  let behaviour: Answer | Fault | Buffer = 'good';
  let queries = 0;
  const server = createServer(async (request, response) => {
    queries += 1;
    writeFileSync(join(folder, 'query.der'), await buffer(request));
    if (isFault(behaviour)) return misbehave(behaviour, response);
    const bytes = typeof behaviour === 'string' ? await respond(behaviour, 7, 'query.der') : behaviour;
    response.writeHead(200, { 'content-type': 'application/ocsp-response' }).end(bytes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await makeAuthority(folder);
  const process = isOpenssl
    ? spawn('openssl', `ocsp -port 0 -ndays 7 ${filesOf('good')}`.split(' '), { cwd: folder })
    : null;
  const port = process === null ? (server.address() as AddressInfo).port : await acceptedPort(process.stdout);
  const url = `http://127.0.0.1:${port}/ocsp`;
  await issueLeaves(folder, url);
  const certificate = (name: string): X509Certificate => new X509Certificate(readFileSync(join(folder, name)));
  const [leaf, issuer] = [certificate('leaf.pem'), certificate('issuer.pem')];
  const key = createPrivateKey(readFileSync(join(folder, 'leaf.key')));

  async function respond(answer: Answer, days: number, query: string): Promise<Buffer> {
    const response = `${answer}.${queries}.der`;
    const signer = answer === 'other-key' ? 'stranger' : answer === 'unappointed' ? 'other' : 'responder';
    const asked = answer === 'other-certificate' ? 'other.der' : query;
    const index = answer in STATES ? answer : 'good';
    const period = answer === 'ending' ? '-nmin 1' : `-ndays ${days}`;
    await openssl(folder, `ocsp ${filesOf(index, signer)} -reqin ${asked} -respout ${response} -no_nonce ${period}`);
    return readFileSync(join(folder, response));
  }

  return {
    url,
    leaf,
    issuer,
    signer: createKeySigner(key, 'es256', [leaf.raw, issuer.raw]),
    certificatePath: join(folder, 'chain.pem'),
    privateKeyPath: join(folder, 'leaf.key'),
    rootPath: join(folder, 'root.pem'),
    respond: (answer, days = 7) => respond(answer, days, 'leaf.der'),
    behave: (next) => {
      behaviour = next;
    },
    queryCount: () => queries,
    close: () => {
      process?.kill();
      server.close();
      server.closeAllConnections();
    },
  };
}

function openssl(folder: string, command: string): Promise<unknown> {
  return run('openssl', command.split(' '), { cwd: folder });
}

/** Names the files of the authority for `openssl ocsp`. */
function filesOf(index: string, signer = 'responder'): string {
  return `-index ${index}.txt -CA issuer.pem -rsigner ${signer}.pem -rkey ${signer}.key`;
}

/** Returns the port that `openssl ocsp` says that it listens on. */
async function acceptedPort(output: Readable): Promise<number> {
  for await (const line of createInterface(output)) {
    const port = /^ACCEPT .*:(\d+) /.exec(line)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error('openssl does not listen');
}

const KEYED = '-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes';

async function makeAuthority(folder: string): Promise<void> {
  for (const name of ['root', 'stranger']) {
    await openssl(folder, `req -x509 ${KEYED} -keyout ${name}.key -out ${name}.pem -days 60 -subj /O=Test/CN=${name}`);
  }
  writeFileSync(join(folder, 'extensions'), extensionsFor(''));
  await issue(folder, 'issuer', { issuer: 'root', section: 'authority', serial: 1 });
  await issue(folder, 'responder', { issuer: 'issuer', section: 'responder', serial: 2 });
  for (const [name, state] of Object.entries(STATES)) {
    const lines = state === '' ? [OTHER] : [`${state}\t0${LEAF_SERIAL}\tunknown\t/O=Test/CN=leaf\n`, OTHER];
    writeFileSync(join(folder, `${name}.txt`), lines.join(''));
  }
}

async function issueLeaves(folder: string, url: string): Promise<void> {
  writeFileSync(join(folder, 'extensions'), extensionsFor(url));
  const serials = { leaf: LEAF_SERIAL, other: OTHER_SERIAL };
  for (const [name, serial] of Object.entries(serials)) {
    await issue(folder, name, { issuer: 'issuer', section: 'leaf', serial });
    await openssl(folder, `ocsp -issuer issuer.pem -cert ${name}.pem -reqout ${name}.der -no_nonce`);
  }
  const chain = ['leaf', 'issuer'].map((name) => readFileSync(join(folder, `${name}.pem`), 'utf8'));
  writeFileSync(join(folder, 'chain.pem'), chain.join(''));
}

async function issue(
  folder: string,
  name: string,
  { issuer, section, serial }: { issuer: string; section: string; serial: number },
): Promise<void> {
  await openssl(folder, `req ${KEYED} -keyout ${name}.key -out ${name}.csr -subj /O=Test/CN=${name}`);
  const authority = `-CA ${issuer}.pem -CAkey ${issuer}.key -set_serial ${serial}`;
  const contents = `-days 45 -extfile extensions -extensions ${section}`;
  await openssl(folder, `x509 -req -in ${name}.csr ${authority} ${contents} -out ${name}.pem`);
}

/** Serial numbers that are the same in decimal and hexadecimal digits. */
const LEAF_SERIAL = 8;
const OTHER_SERIAL = 9;

/** The leaf in the databases of the authority (`man openssl-ca`), one for each thing that it may say. */
const STATES = {
  good: 'V\t301231235959Z\t',
  revoked: 'R\t301231235959Z\t200101000000Z,keyCompromise',
  'revoked-later': 'R\t301231235959Z\t300101000000Z,keyCompromise',
  unknown: '',
};
const OTHER = `V\t301231235959Z\t\t0${OTHER_SERIAL}\tunknown\t/O=Test/CN=other\n`;

const FAULTS: readonly (Answer | Fault | Buffer)[] = [
  'garbage',
  'try-later',
  'refusing',
  'redirecting',
  'huge',
  'silent',
  'hanging-up',
] satisfies Fault[];

function isFault(behaviour: Answer | Fault | Buffer): behaviour is Fault {
  return FAULTS.includes(behaviour);
}

function misbehave(fault: Fault, response: ServerResponse): void {
  switch (fault) {
    case 'garbage':
      response.end('this is no OCSP response');
      return;
    case 'try-later':
      response.end(Buffer.from([0x30, 0x03, 0x0a, 0x01, 0x03]));
      return;
    case 'refusing':
      response.writeHead(503).end();
      return;
    case 'redirecting':
      response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end();
      return;
    case 'huge':
      response.end(Buffer.alloc(1024 * 1024, 0x30));
      return;
    case 'hanging-up':
      response.destroy();
      return;
    case 'silent':
  }
}
