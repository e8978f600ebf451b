import assert from 'node:assert';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import {
  type IdentityOrder,
  type ProtocolViolation,
  type SignerAnswer,
  type SignerClientState,
  stopReading,
  type ToSigner,
} from './signer-protocol.ts';
import type { IdentityDescription } from './signing-identity.ts';

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
  /** Lets the process sign with its identity, by the name, and with no other; null for none. */
  allow(identity: string | null): void;
}

interface Client {
  readonly process: SigningProcess;
  /** The number of the key that it signs with while it may. */
  readonly key: number;
  isAllowed: boolean;
}

type SignerChild = Child<ToSigner, SignerAnswer, ProtocolViolation>;

export interface SignerOptions {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly log: Log;
}

/**
 * Supervises the process that holds the signing keys, and alone reads their files. It is restarted with exponential
 * back-off when it exits or hangs; its clients get new channels and send their pending requests again. A client signs with the
 * identity that was in force when it was attached, for as long as it lives.
 */
export class SignerSupervisor {
  readonly #options: SignerOptions;
  readonly #clients = new Map<number, Client>();
  #nextClientId = 1;
  #child: SignerChild | null = null;
  #identity: IdentityDescription | null = null;
  /** The number of a key that is loaded and not in force yet. */
  #candidateKey: number | null = null;
  readonly #renewed: (() => void)[] = [];
  readonly #closed: (() => void)[] = [];
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

  /** Calls the listener each time that another identity has come into force. */
  onRenewal(listener: () => void): void {
    this.#renewed.push(listener);
  }

  /** Calls the listener when the signer is closed. */
  onClose(listener: () => void): void {
    this.#closed.push(listener);
  }

  /**
   * Connects a process through this end of its channel; null where it could not be started. It may sign with nothing yet, and
   * later with the given identity, or the one in force.
   */
  attach(process: SigningProcess, channel: Socket | null, identity = this.identity): SignerAccess {
    const clientId = this.#nextClientId++;
    const client = { process, key: identity.key, isAllowed: false };
    if (channel !== null) {
      this.#clients.set(clientId, client);
      void process.exited.then(() => {
        this.#clients.delete(clientId);
        this.#dropKeys();
      });
      this.#child?.send({ type: 'client', client: stateOf(clientId, client) }, stopReading(channel));
    }
    return {
      allow: (name) => {
        assert(name === null || name === identity.name, 'an input signs with an identity that is configured');
        if (name === null && !client.isAllowed) return;
        client.isAllowed = name !== null;
        this.#child?.send({ type: 'allow', client: stateOf(clientId, client) });
      },
    };
  }

  /**
   * Has the signer load the identity as its files are now. Another one that passes the check comes into force, and processes that
   * are attached go on with the old one. Returns false where the signer cannot be asked now. Throws an AppError where the files
   * cannot be used, and what the check throws.
   */
  async renew(check: (candidate: IdentityDescription) => Promise<void>): Promise<boolean> {
    const child = this.#child;
    if (child === null || !child.isAlive || child.isAsked) return false;
    this.#candidateKey = this.#freeKey();
    try {
      const answer = await child.ask({ type: 'load', identity: this.#identityOrder(this.#candidateKey) }, START);
      if (answer === null) return false;
      if ('error' in answer) throw AppError.fromData(answer.error);
      assert('identity' in answer, 'a signer that loads has an identity');
      if (answer.identity.key === this.identity.key) return true;
      await check(answer.identity);
      // A signer that was restarted meanwhile does not have that key.
      if (this.#child !== child || !child.isAlive) return false;
      this.#identity = answer.identity;
    } finally {
      this.#candidateKey = null;
      this.#dropKeys();
    }
    for (const listener of this.#renewed) listener();
    return true;
  }

  close(): void {
    this.#isClosed = true;
    for (const listener of this.#closed) listener();
    clearInterval(this.#pings);
    clearTimeout(this.#restart);
    this.#child?.kill();
  }

  /** Has the signer drop the keys that no process uses any more. */
  #dropKeys(): void {
    this.#child?.send({ type: 'keep', keys: [...this.#usedKeys()] });
  }

  #usedKeys(): Set<number> {
    const keys = [this.#identity?.key, this.#candidateKey, ...Array.from(this.#clients.values(), ({ key }) => key)];
    return new Set(keys.filter((key) => key !== null && key !== undefined));
  }

  /** Returns the lowest number that no key in use has: there are as many as processes at most, and one more. */
  #freeKey(): number {
    const used = this.#usedKeys();
    let key = 0;
    while (used.has(key)) key += 1;
    return key;
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
      clients: Array.from(this.#clients, ([clientId, client]) => stateOf(clientId, client)),
      identity: this.#identityOrder(this.#freeKey()),
    };
    return await child.ask({ type: 'start', order }, START);
  }

  #identityOrder(key: number): IdentityOrder {
    const current = this.#identity;
    return { current: current && { key: current.key, certificateChain: current.certificateChain }, key };
  }

  #restartLater(cause: string): void {
    if (this.#isClosed) return;
    this.#options.log.warn(
      { exit_cause: cause, pause_ms: this.#backoffMs },
      'the signer process exited and is restarted',
    );
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
        if ('identity' in answer) this.#tellOfLostKey(answer.identity);
        return;
      }
      const { reason, message: problem } = AppError.fromData(answer.error);
      this.#options.log.error({ reason, problem }, 'the signer process cannot load the signing identity');
      child.kill(`because it cannot load the signing identity`);
    } catch (error) {
      // The system gives no process now, for want of memory or descriptors.
      this.#restartLater((error as Error).message);
    }
  }

  /** The files were replaced before the signer was restarted. What they hold comes into force once it has been checked. */
  #tellOfLostKey({ file, key }: IdentityDescription): void {
    if (key === this.identity.key) return;
    this.#options.log.warn({ file }, 'the signer process was restarted, and its files hold another signing identity');
  }

  /** Asks a signer that has nothing to answer whether it is there; one that does not say so is killed. */
  async #ping(): Promise<void> {
    if (this.#child?.isAsked === false) await this.#child.ask({ type: 'ping' }, PING);
  }
}

function stateOf(clientId: number, { key, isAllowed }: Client): SignerClientState {
  return { clientId, keys: isAllowed ? [key] : [] };
}
