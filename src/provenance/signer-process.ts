import assert from 'node:assert';
import type { ChildProcess } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import type { ManifestProblem } from './dry-run/dry-run-manifest.ts';
import { FIRST_CHANNEL, type FromSigner, stopReading, type ToSigner } from './signer-protocol.ts';
import type { IdentityDescription } from './signing-identity.ts';
import type { TrustLists } from './trust-lists.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const PROCESS_URL = new URL(`./identity/run-signer${extname(import.meta.url)}`, import.meta.url);

/** Limits the young generation of the heap to 1 MiB: the signer keeps nothing from one signature to the next. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

const LIMITS = { openFiles: 4096, dataBytes: 1024 ** 3 } as const;

const START_TIMEOUT_MS = 60_000;

/** A signer that leaves this many pings unanswered hangs, and is killed. */
const PING_INTERVAL_MS = 10_000;
const MAX_UNANSWERED_PINGS = 2;

/** Limits of the back-off before a restart, which doubles each time. */
const MIN_RESTART_BACKOFF_MS = 50;
const MAX_RESTART_BACKOFF_MS = 10_000;

/** A process that signs with the key of the signer process. */
interface SignerClient {
  /** Settles when the process has exited. */
  readonly exited: Promise<void>;
  /** Sends the channel to a restarted signer to the client, and closes this process's copy. */
  giveChannel(channel: Socket): void;
  /** Kills the process, which violated the protocol of the signer, and so may be taken over. */
  kill(because: string): void;
}

interface SignerProcessOptions {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly log: Log;
}

/**
 * Supervises the process that holds the signing key, and alone reads its file. It is restarted with exponential
 * back-off when it exits or hangs; its clients get new channels and send their pending requests again.
 */
export class SignerProcess {
  readonly #options: SignerProcessOptions;
  readonly #clients = new Map<number, SignerClient>();
  #nextClientId = 1;
  #child: ChildProcess;
  #identity: IdentityDescription | null = null;
  #isClosed = false;
  #backoffMs = MIN_RESTART_BACKOFF_MS;
  /** Negative while the signer starts, which may take longer than an answer. */
  #unansweredPings = 0;
  #restart: NodeJS.Timeout | undefined;
  readonly #pings: NodeJS.Timeout;

  private constructor(options: SignerProcessOptions) {
    this.#options = options;
    this.#child = this.#launch();
    this.#pings = setInterval(() => this.#ping(), PING_INTERVAL_MS).unref();
  }

  /** Starts the signer. Throws an AppError that names the file, its problem, and the remedy. */
  static async start(options: SignerProcessOptions): Promise<SignerProcess> {
    const signer = new SignerProcess(options);
    const { promise, resolve, reject } = Promise.withResolvers<IdentityDescription>();
    const timer = setTimeout(() => reject(new Error('the signer process did not start in time')), START_TIMEOUT_MS);
    const onExit = (code: number | null, signal: NodeJS.Signals | null) =>
      reject(new Error(`the signer process exited before it was ready (${signal ?? code})`));
    signer.#child.once('exit', onExit).once('error', reject);
    signer.#child.on('message', (message: FromSigner) => {
      if (message.type === 'ready') resolve(message.identity);
      if (message.type === 'failed') reject(AppError.fromData(message.error));
    });
    try {
      signer.#identity = await promise;
      signer.#child.off('exit', onExit);
      signer.#unansweredPings = 0;
      signer.#supervise();
      return signer;
    } catch (error) {
      signer.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  get identity(): IdentityDescription {
    assert(this.#identity !== null, 'a signer is used after its start');
    return this.#identity;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Connects a client through this end of its channel. Does nothing where the client could not be started. */
  attach(client: SignerClient, channel: Socket | null): void {
    if (channel === null) return;
    const clientId = this.#nextClientId++;
    this.#clients.set(clientId, client);
    void client.exited.then(() => this.#clients.delete(clientId));
    if (this.#child.connected) send(this.#child, { type: 'client', clientId }, stopReading(channel));
    else channel.destroy();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pings);
    clearTimeout(this.#restart);
    this.#child.kill('SIGKILL');
  }

  #launch(): ChildProcess {
    const { config, launcher } = this.#options;
    this.#unansweredPings = -Math.ceil(START_TIMEOUT_MS / PING_INTERVAL_MS);
    const clients = [...this.#clients];
    const child = launcher.launch(PROCESS_URL, {
      execArgv: [YOUNG_GENERATION],
      limits: LIMITS,
      pipeCount: clients.length,
    });
    const order = {
      signing: config.signing,
      dataDir: config.jobs.data_dir,
      clientIds: clients.map(([id]) => id),
      expected: this.#identity?.certificateChain ?? null,
    };
    send(child, { type: 'start', order });
    for (const [index, [, client]] of clients.entries()) {
      const channel = child.stdio[FIRST_CHANNEL + index];
      if (channel != null) client.giveChannel(stopReading(channel as Socket));
    }
    return child;
  }

  /** Restarts the current process when it exits, and kills it when it cannot load the identity. */
  #supervise(): void {
    const child = this.#child;
    child.on('message', (message: FromSigner) => {
      this.#unansweredPings = 0;
      if (message.type === 'ready') this.#backoffMs = MIN_RESTART_BACKOFF_MS;
      if (message.type === 'violation') this.#clients.get(message.clientId)?.kill(`because ${message.problem}`);
      if (message.type !== 'failed') return;
      const { message: problem } = AppError.fromData(message.error);
      this.#options.log.error({ problem }, 'the signer process cannot load the signing identity');
      child.kill('SIGKILL');
    });
    // A process that cannot be started emits no exit.
    child.on('error', (error) => this.#restartLater(error.message));
    child.on('exit', (code, signal) => this.#restartLater(signal ?? `exit code ${code}`));
  }

  #restartLater(how: string): void {
    if (this.#isClosed || this.#restart !== undefined) return;
    this.#options.log.warn({ how, pause_ms: this.#backoffMs }, 'the signer process exited and is restarted');
    this.#restart = setTimeout(() => this.#startAgain(), this.#backoffMs);
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_RESTART_BACKOFF_MS);
  }

  #startAgain(): void {
    this.#restart = undefined;
    try {
      this.#child = this.#launch();
    } catch (error) {
      // The system gives no process now, for want of memory or descriptors.
      return this.#restartLater((error as Error).message);
    }
    this.#supervise();
  }

  #ping(): void {
    if (!this.#child.connected) return;
    if (this.#unansweredPings >= MAX_UNANSWERED_PINGS) this.#child.kill('SIGKILL');
    this.#unansweredPings += 1;
    send(this.#child, { type: 'ping' });
  }
}

/** Returns this process's end of a child's channel to the signer; null where the child could not be started. */
export function signerChannelOf(child: ChildProcess): Socket | null {
  return (child.stdio[FIRST_CHANNEL] as Socket | null | undefined) ?? null;
}

/** Sends a message. Ignores failures, which the exit of the process explains. */
function send(child: ChildProcess, message: ToSigner, channel?: Socket): void {
  child.send(message, channel, undefined, () => channel?.destroy());
}

/**
 * Starts the process that holds the key, and has both official readers judge what it signs. Throws an AppError that names the
 * file, its problem, and the remedy.
 */
export async function startSigner(options: SignerProcessOptions, trust: TrustLists): Promise<SignerProcess> {
  const signer = await SignerProcess.start(options);
  try {
    await checkIdentity(signer, options.launcher);
    logIdentity(signer.identity, trust, options.log);
    return signer;
  } catch (error) {
    signer.close();
    throw error;
  }
}

/**
 * Logs the identity with the trust list that has an anchor of it (null for none), and warns where nobody has a reason
 * to trust it, or others can read its key.
 */
function logIdentity(identity: IdentityDescription, trust: TrustLists, log: Log): void {
  const { kind, subject, notAfter, file, exposedKey, certificateChain } = identity;
  if (exposedKey !== null) {
    const remedy = `chmod 600 "${exposedKey.file}"`;
    log.warn({ ...exposedKey, remedy }, 'others can read or change the file of the signing key');
  }
  const chain = certificateChain.map((der) => new X509Certificate(Buffer.from(der, 'base64')));
  const fields = { kind, subject, not_after: notAfter, file, trust_list: trust.listOfChain(chain) };
  if (kind === 'configured') return log.info(fields, 'signing identity loaded');
  log.warn(
    fields,
    'SIGNING WITH A DEVELOPMENT IDENTITY that nobody has a reason to trust. Set signing.certificate_path and signing.private_key_path before outputs are published.',
  );
}

const CHECK_PROCESS_URL = new URL(`./dry-run/run-identity-check${extname(import.meta.url)}`, import.meta.url);

const CHECK_TIMEOUT_MS = 60_000;

/**
 * Signs a small manifest with a configured identity. Throws `IDENTITY_INVALID` where one of the official readers calls it
 * invalid. The SDK runs in a process of its own, without the key. A development identity is this program's own work, and
 * not checked at each start: that takes half a second of processor time.
 */
export async function checkIdentity(signer: SignerProcess, launcher: Launcher): Promise<void> {
  const { file, kind } = signer.identity;
  if (kind === 'development') return;
  const problems = await judgeInProcess(signer, launcher);
  if (problems.length === 0) return;
  throw new AppError('IDENTITY_INVALID', {
    file,
    problems: problems.map(
      ({ reader, problem }) =>
        `the official ${reader === 'wasm' ? 'WASM' : 'native'} reader refuses what it signs (${problem}). Have the certificate issued by the C2PA certificate profile, with emailProtection among its extended key usages`,
    ),
  });
}

async function judgeInProcess(signer: SignerProcess, launcher: Launcher): Promise<readonly ManifestProblem[]> {
  const child = launcher.launch(CHECK_PROCESS_URL, { execArgv: [], writable: [], pipeCount: 1 });
  // A process that cannot be started emits an error and no exit.
  const exited = once(child, 'exit').catch(() => [null, 'no process']);
  signer.attach(
    { exited: exited.then(() => undefined), giveChannel: (next) => next.destroy(), kill: () => child.kill('SIGKILL') },
    signerChannelOf(child),
  );
  const timer = setTimeout(() => child.kill('SIGKILL'), CHECK_TIMEOUT_MS);
  const { promise, resolve, reject } = Promise.withResolvers<readonly ManifestProblem[]>();
  child.once('message', (problems) => resolve(problems as readonly ManifestProblem[]));
  child.once('error', reject);
  void exited.then(([code, signal]) =>
    reject(new Error(`the check of the signing identity exited early (${signal ?? code})`)),
  );
  child.send(signer.identity, () => undefined);
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
