import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { after } from 'node:test';
import { inspect } from 'node:util';
import { AppError } from '#errors/app-error.ts';
import type { DeviceSettings } from '#provenance/identity/signers/device-key.ts';
import { type DeviceSigner, openSigner } from '#provenance/identity/signers/open-signer.ts';
import type { SigningAlgorithm } from '#provenance/signer.ts';
import { type TestIdentity, testIdentity } from '../../support/manifests/test-identity.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

/** A request as the service of a test sees it. */
export interface ServiceRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface ServiceAnswer {
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A service that holds keys, and what it does to its next requests instead of answering them. */
export interface KeyService {
  readonly url: string;
  readonly faults: (ServiceAnswer | 'drop' | 'hang')[];
  readonly requests: ServiceRequest[];
}

/** Starts a service that runs until the tests of the file are done. */
export async function startKeyService(
  answer: (request: ServiceRequest) => Promise<ServiceAnswer> | ServiceAnswer,
  { tls, socketPath }: { tls?: ServerOptions; socketPath?: string } = {},
): Promise<KeyService> {
  const service = { faults: [] as KeyService['faults'], requests: [] as ServiceRequest[] };
  const server = tls === undefined ? createServer() : createTlsServer(tls);
  server.on('request', async (incoming, response: ServerResponse) => {
    const { method = '', url: path = '', headers } = incoming;
    const request = { method, path, headers, body: await buffer(incoming) };
    service.requests.push(request);
    const fault = service.faults.shift();
    if (fault === 'hang') return;
    if (fault === 'drop') return void incoming.socket.destroy();
    const { status, body, headers: given } = fault ?? (await answer(request));
    response.writeHead(status, given);
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  server.listen(socketPath ?? { port: 0, host: '127.0.0.1' });
  await once(server, 'listening');
  after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = (socketPath === undefined ? server.address() : {}) as AddressInfo;
  return { ...service, url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}` };
}

const folder = temporaryFolder();
const keyFiles = new Map<KeyObject, string>();

/** Signs a digest as a key service does, by OpenSSL: ECDSA in DER. */
export async function signDigest(
  key: KeyObject,
  hash: string,
  padding: 'pss' | 'pkcs1' | null,
  digest: Buffer,
): Promise<Buffer> {
  const file = keyFiles.get(key) ?? join(folder, `key-${keyFiles.size}.pem`);
  if (!keyFiles.has(key)) writeFileSync(file, key.export({ type: 'pkcs8', format: 'pem' }));
  keyFiles.set(key, file);
  const options = ['-pkeyopt', `digest:${hash}`];
  if (padding !== null) options.push('-pkeyopt', `rsa_padding_mode:${padding}`);
  if (padding === 'pss') options.push('-pkeyopt', 'rsa_pss_saltlen:digest');
  const child = spawn('openssl', ['pkeyutl', '-sign', '-inkey', file, ...options], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.end(digest);
  return await buffer(child.stdout);
}

export function signMessage(key: KeyObject, data: Buffer): Buffer {
  return sign(null, data, key);
}

/** Opens the signer of an identity with settings of a device. */
export function openWith(
  settings: DeviceSettings,
  { privateKey, signer }: TestIdentity,
  timeoutMs?: number,
): Promise<DeviceSigner> {
  return openSigner(settings, {
    algorithm: signer.algorithm,
    publicKey: createPublicKey(privateKey),
    certificateChain: signer.certificateChain,
    stateDir: folder,
    ...(timeoutMs !== undefined && { timeoutMs }),
  });
}

/** Makes an identity for each algorithm. */
export async function identitiesOf<Algorithm extends SigningAlgorithm>(
  algorithms: readonly Algorithm[],
): Promise<ReadonlyMap<Algorithm, TestIdentity>> {
  const made = algorithms.map(
    async (algorithm) => [algorithm, await testIdentity({ algorithm, intermediate: true })] as const,
  );
  return new Map(await Promise.all(made));
}

/** Checks the reason of an error, and that neither it nor its causes tell a secret. */
export function failure(reason: string, secrets: readonly string[] = []) {
  return (error: unknown) => {
    assert(error instanceof AppError, `${error}`);
    assert.equal(error.reason, reason, error.message);
    const told = inspect(error, { depth: null, showHidden: true });
    for (const secret of secrets) assert(!told.includes(secret), 'a secret is told');
    return true;
  };
}
