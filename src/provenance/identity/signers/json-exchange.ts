import { readFile } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import type { Agent, buildConnector } from 'undici';
import { retry } from '#concurrency/retry.ts';
import { AppError } from '#errors/app-error.ts';
import { isSystemError, problemOf, systemErrorCode } from '#errors/system-problem.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Bounds the wait for the headers of an answer, and for each part of it. */
const ANSWER_TIMEOUT_MS = 10_000;
const MAX_CONNECTIONS = 16;
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_HEADERS_BYTES = 16 * 1024;
const BACKOFF = { firstMs: 100, maxMs: 2_000 };
/** With their pauses, some three seconds where the server refuses at once. */
const MAX_ATTEMPTS = 6;

/** The way to a server. */
export interface ServerSettings {
  readonly url: URL;
  /** The server as part of a sentence. */
  readonly device: string;
  readonly socketPath?: string | undefined;
  readonly caPath?: string | undefined;
  readonly certificatePath?: string | undefined;
  readonly keyPath?: string | undefined;
}

export interface JsonRequest {
  readonly method: 'GET' | 'POST';
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The key that the request is about. */
  readonly key: string;
  /** True where the status 400 says that the credential is wrong. */
  readonly isLogin?: boolean;
}

/** Connections to a server that answers with JSON. */
export interface JsonServer {
  /**
   * Sends a request, again where the server is busy or the connection is lost. Follows no redirect. Throws
   * `SIGNER_ACCESS_REFUSED`, `SIGNER_KEY_MISSING` or `SIGNER_AWAY`, or the reason of the signal.
   */
  send(request: JsonRequest, signal: AbortSignal): Promise<unknown>;
  close(): Promise<void>;
}

/** An answer that may be another one soon. */
class BusyServer extends Error {}

export async function connectJsonServer(settings: ServerSettings): Promise<JsonServer> {
  const { Agent, buildConnector, request } = await import('undici');
  const { device } = settings;
  const agent: Agent = new Agent({
    connections: MAX_CONNECTIONS,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADERS_BYTES,
    headersTimeout: ANSWER_TIMEOUT_MS,
    bodyTimeout: ANSWER_TIMEOUT_MS,
    // Each connection reads the files, so that renewed ones are used.
    connect: (options, callback) => {
      tlsOptions(settings).then(
        (tls) => buildConnector(tls)(options, callback),
        (error) => callback(error, null),
      );
    },
  });
  const ask = async ({ method, url, headers, body, key, isLogin = false }: JsonRequest, signal: AbortSignal) => {
    const answer = await request(url, {
      dispatcher: agent,
      method,
      signal,
      headers: { accept: 'application/json', ...(body && { 'content-type': 'application/json' }), ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await textOf(answer.body);
    if (answer.statusCode !== 200) throw refusal(answer.statusCode, { key, isLogin }, device);
    return parse(text, device);
  };
  return {
    async send(sent, signal) {
      const isTransient = (error: unknown) => !(error instanceof AppError);
      try {
        return await retry(() => ask(sent, signal), {
          backoff: BACKOFF,
          maxAttempts: MAX_ATTEMPTS,
          isTransient,
          signal,
        });
      } catch (cause) {
        if (cause instanceof AppError) throw cause;
        throw new AppError('SIGNER_AWAY', { device, problem: problemOfExchange(cause) }, { cause });
      }
    },
    close: () => agent.destroy(),
  };
}

async function tlsOptions(settings: ServerSettings): Promise<buildConnector.BuildOptions> {
  const { socketPath = null, caPath, certificatePath, keyPath } = settings;
  return {
    timeout: CONNECT_TIMEOUT_MS,
    allowH2: false,
    ...(socketPath !== null && { socketPath }),
    ...(caPath !== undefined && { ca: await readCredentialFile(caPath) }),
    ...(certificatePath !== undefined && { cert: await readCredentialFile(certificatePath) }),
    ...(keyPath !== undefined && { key: await readCredentialFile(keyPath) }),
  };
}

async function textOf(body: Readable): Promise<string> {
  const parts: Buffer[] = [];
  let sizeBytes = 0;
  for await (const part of body) {
    sizeBytes += part.length;
    // Leaving the loop closes the connection.
    if (sizeBytes > MAX_ANSWER_BYTES) throw new BusyServer('its answer is too long');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

/** Returns the error of an answer. Its body is left out: it may repeat the credential. */
function refusal(
  status: number,
  { key, isLogin = false }: Pick<JsonRequest, 'key' | 'isLogin'>,
  device: string,
): Error {
  if (status === 401 || status === 403 || (isLogin && status === 400)) {
    return new AppError('SIGNER_ACCESS_REFUSED', { device, problem: `it refused the credential (${status})` });
  }
  if (status === 404) return new AppError('SIGNER_KEY_MISSING', { key, device });
  if (status === 429 || status >= 500) return new BusyServer(`it answered with the status ${status}`);
  const problem =
    status >= 300 && status < 400
      ? `it answered with a redirect (${status}), which is not followed`
      : `it answered with the status ${status}`;
  return new AppError('SIGNER_AWAY', { device, problem });
}

function parse(text: string, device: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new AppError('SIGNER_AWAY', { device, problem: 'its answer is not JSON' });
  }
}

/** Reads the part of an answer that a caller needs. Throws `SIGNER_AWAY` where the answer has another form. */
export function readAnswer<T>(read: (answer: unknown) => T, answer: unknown, device: string): T {
  try {
    return read(answer);
  } catch (cause) {
    throw new AppError('SIGNER_AWAY', { device, problem: 'its answer has another form than expected' }, { cause });
  }
}

function problemOfExchange(error: unknown): string {
  if (error instanceof BusyServer) return error.message;
  if (isSystemError(error)) return problemOf(error);
  return `the connection failed (${systemErrorCode(error) ?? 'for an unknown reason'})`;
}

/** A credential is short; nothing longer is read. */
const MAX_CREDENTIAL_CHARACTERS = 64 * 1024;

/** Reads a PIN, a token or the like, without the white space around it. Throws `SIGNER_CREDENTIAL_UNREADABLE`. */
export async function readCredential(file: string): Promise<string> {
  const text = (await readCredentialFile(file)).toString('utf8').trim();
  if (text !== '' && text.length <= MAX_CREDENTIAL_CHARACTERS) return text;
  throw new AppError('SIGNER_CREDENTIAL_UNREADABLE', { file, problem: text === '' ? 'it is empty' : 'it is too long' });
}

/** Reads a file of a credential. Throws `SIGNER_CREDENTIAL_UNREADABLE`. */
async function readCredentialFile(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (cause) {
    throw new AppError('SIGNER_CREDENTIAL_UNREADABLE', { file, problem: problemOf(cause) }, { cause });
  }
}
