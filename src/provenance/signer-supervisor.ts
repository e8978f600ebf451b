import assert from 'node:assert';
import { X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import type { TimeStampSettings } from './authoring/time-stamps.ts';
import type { ManifestProblem } from './dry-run/dry-run-manifest.ts';
import { type ProtocolViolation, type SignerAnswer, stopReading, type ToSigner } from './signer-protocol.ts';
import type { IdentityDescription } from './signing-identity.ts';
import type { TrustLists } from './trust-lists.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const PROCESS_URL = new URL(`./identity/run-signer${extname(import.meta.url)}`, import.meta.url);

/** Limits the young generation of the heap to 1 MiB: the signer keeps nothing from one signature to the next. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

const LIMITS = { openFiles: 4096, dataBytes: 1024 ** 3 } as const;

const START = { boundMs: 60_000, because: 'because it did not get ready in time' };

/** The interval of looking whether the signer hangs, and the bound on its answer, in milliseconds. */
const PING_INTERVAL_MS = 10_000;
const PING = { boundMs: 2 * PING_INTERVAL_MS, because: 'because it did not answer' };

/** Limits of the back-off before a restart, which doubles each time. */
const MIN_RESTART_BACKOFF_MS = 50;
const MAX_RESTART_BACKOFF_MS = 10_000;

/** A process that signs with the keys of the signer process. */
interface SigningProcess {
  /** Settles when the process has exited. */
  readonly exited: Promise<unknown>;
  /** Sends the channel to a restarted signer to the client, and closes this process's copy. */
  giveChannel(channel: Socket): void;
  /** Kills the process, which violated the protocol of the signer, and so may be taken over. */
  kill(because: string): void;
}

/** The right of one process to signatures. */
export interface SignerAccess {
  /** Lets the process sign with an identity, by its name, and with no other; null for none. */
  allow(identity: string | null): void;
}

type SignerChild = Child<ToSigner, SignerAnswer, ProtocolViolation>;

interface SignerOptions {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly log: Log;
}

/**
 * Supervises the process that holds the signing keys, and alone reads their files. It is restarted with exponential
 * back-off when it exits or hangs; its clients get new channels and send their pending requests again.
 */
export class SignerSupervisor {
  readonly #options: SignerOptions;
  readonly #clients = new Map<number, { readonly process: SigningProcess; keys: readonly number[] }>();
  #nextClientId = 1;
  #child: SignerChild | null = null;
  #identity: IdentityDescription | null = null;
  #isClosed = false;
  #backoffMs = MIN_RESTART_BACKOFF_MS;
  #restart: NodeJS.Timeout | undefined;
  readonly #pings: NodeJS.Timeout;

  private constructor(options: SignerOptions) {
    this.#options = options;
    this.#pings = setInterval(() => void this.#ping(), PING_INTERVAL_MS).unref();
  }

  /** Starts the signer. Throws an AppError that names the file, its problem, and the remedy. */
  static async start(options: SignerOptions): Promise<SignerSupervisor> {
    const signer = new SignerSupervisor(options);
    try {
      const child = signer.#launch();
      const answer = await signer.#begin(child);
      if (answer === null) throw new Error(`the signer process exited before it was ready, ${child.exit?.cause}`);
      if ('error' in answer) throw AppError.fromData(answer.error);
      assert('identity' in answer, 'a signer that starts has an identity');
      signer.#identity = answer.identity;
      void child.exited.then(({ cause }) => signer.#restartLater(cause));
      return signer;
    } catch (error) {
      signer.close();
      throw error;
    }
  }

  get identity(): IdentityDescription {
    assert(this.#identity !== null, 'a signer is used after its start');
    return this.#identity;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Connects a process through this end of its channel; null where it could not be started. It may sign with nothing yet. */
  attach(process: SigningProcess, channel: Socket | null): SignerAccess {
    const clientId = this.#nextClientId++;
    const client = { process, keys: [] as readonly number[] };
    if (channel !== null) {
      this.#clients.set(clientId, client);
      void process.exited.then(() => this.#clients.delete(clientId));
      this.#child?.send({ type: 'client', client: { clientId, keys: client.keys } }, stopReading(channel));
    }
    return {
      allow: (identity) => {
        if (identity === null && client.keys.length === 0) return;
        client.keys = identity === null ? [] : [this.#keyOf(identity)];
        this.#child?.send({ type: 'allow', client: { clientId, keys: client.keys } });
      },
    };
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pings);
    clearTimeout(this.#restart);
    this.#child?.kill();
  }

  #keyOf(name: string): number {
    assert.equal(name, this.identity.name, 'an input signs with an identity that is configured');
    return this.identity.key;
  }

  #launch(): SignerChild {
    const clients = [...this.#clients.values()];
    const child: SignerChild = new Child(this.#options.launcher, PROCESS_URL, {
      execArgv: [YOUNG_GENERATION],
      limits: LIMITS,
      pipeCount: clients.length,
      onEvent: ({ clientId, problem }) => this.#clients.get(clientId)?.process.kill(`because ${problem}`),
    });
    this.#child = child;
    for (const [index, { process }] of clients.entries()) {
      const channel = child.channel(index);
      if (channel !== null) process.giveChannel(stopReading(channel));
    }
    return child;
  }

  /** Has a signer load the identity. */
  async #begin(child: SignerChild): Promise<SignerAnswer | null> {
    const { config } = this.#options;
    const order = {
      signing: config.signing,
      dataDir: config.jobs.data_dir,
      clients: Array.from(this.#clients, ([clientId, { keys }]) => ({ clientId, keys })),
      expected: this.#identity?.certificateChain ?? null,
    };
    return await child.ask({ type: 'start', order }, START);
  }

  #restartLater(how: string): void {
    if (this.#isClosed) return;
    this.#options.log.warn({ how, pause_ms: this.#backoffMs }, 'the signer process exited and is restarted');
    this.#restart = setTimeout(() => void this.#startAgain(), this.#backoffMs);
    this.#backoffMs = Math.min(this.#backoffMs * 2, MAX_RESTART_BACKOFF_MS);
  }

  async #startAgain(): Promise<void> {
    try {
      const child = this.#launch();
      void child.exited.then(({ cause }) => this.#restartLater(cause));
      const answer = await this.#begin(child);
      if (answer === null) return;
      if (!('error' in answer)) {
        this.#backoffMs = MIN_RESTART_BACKOFF_MS;
        return;
      }
      const { message: problem } = AppError.fromData(answer.error);
      this.#options.log.error({ problem }, 'the signer process cannot load the signing identity');
      child.kill(`because it cannot load the signing identity`);
    } catch (error) {
      // The system gives no process now, for want of memory or descriptors.
      this.#restartLater((error as Error).message);
    }
  }

  /** Asks a signer that has nothing to answer whether it is there; one that does not say so is killed. */
  async #ping(): Promise<void> {
    if (this.#child?.isAsked === false) await this.#child.ask({ type: 'ping' }, PING);
  }
}

/**
 * Starts the process that holds the key, and has both official readers judge what it signs. Throws an AppError that names the
 * file, its problem, and the remedy.
 */
export async function startSigner(options: SignerOptions, trust: TrustLists): Promise<SignerSupervisor> {
  const signer = await SignerSupervisor.start(options);
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

/** The request of a check: the identity to sign with, and the authorities of the time-stamp; null for none. */
export interface SigningCheck {
  readonly identity: IdentityDescription;
  readonly timeStamps: TimeStampSettings | null;
}

const CHECK = { boundMs: 60_000, because: 'because it took too long' };

/**
 * Signs a small manifest with a configured identity. Throws `IDENTITY_INVALID` where one of the official readers calls it
 * invalid. The SDK runs in a process of its own, without the key. A development identity is this program's own work, and
 * not checked at each start: that takes half a second of processor time.
 */
export async function checkIdentity(signer: SignerSupervisor, launcher: Launcher): Promise<void> {
  const { file, kind } = signer.identity;
  if (kind === 'development') return;
  const problems = await judgeInProcess(signer, launcher, null);
  if (problems.length === 0) return;
  throw new AppError('IDENTITY_INVALID', {
    file,
    problems: problems.map(
      ({ reader, problem }) =>
        `the official ${reader === 'wasm' ? 'WASM' : 'native'} reader refuses what it signs (${problem}). Have the certificate issued by the C2PA certificate profile, with emailProtection among its extended key usages`,
    ),
  });
}

/**
 * Signs a small manifest, with a time-stamp where settings are given. Resolves with null where that works, else with the problem.
 */
export async function probeSigning(
  signer: SignerSupervisor,
  launcher: Launcher,
  timeStamps: TimeStampSettings | null,
): Promise<string | null> {
  const [found] = await judgeInProcess(signer, launcher, timeStamps);
  return found === undefined ? null : found.problem;
}

async function judgeInProcess(
  signer: SignerSupervisor,
  launcher: Launcher,
  timeStamps: TimeStampSettings | null,
): Promise<readonly ManifestProblem[]> {
  const child = new Child<SigningCheck, readonly ManifestProblem[]>(launcher, CHECK_PROCESS_URL, {
    execArgv: [],
    writable: [],
    pipeCount: 1,
  });
  const kill = (because: string) => child.kill(because);
  const own = { exited: child.exited, giveChannel: (next: Socket) => next.destroy(), kill };
  signer.attach(own, child.channel()).allow(signer.identity.name);
  return await child.askOnce('the check of the signing identity', { identity: signer.identity, timeStamps }, CHECK);
}
