import assert from 'node:assert';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import { backoffMs } from '#concurrency/retry.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import type { CredentialSettings, SignerSettings } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import { itemAt } from '#errors/assert.ts';
import { Child } from '#processes/child.ts';
import type { Launcher } from '#processes/launcher.ts';
import type { Log } from '#telemetry/logger.ts';
import { SIGNER_THREADS } from './identity/signers/device-key.ts';
import {
  type KeyOrder,
  type KeyQuestion,
  type LoadAnswer,
  type ProtocolViolation,
  type SignerAnswer,
  stopReading,
  type ToSigner,
} from './signer-protocol.ts';
import type { CredentialDescription } from './signing-identity.ts';

/** Has the extension of this module: in a build, both are JavaScript. */
const PROCESS_URL = new URL(`./identity/run-signer${extname(import.meta.url)}`, import.meta.url);

/** Limits the young generation of the heap to 1 MiB: the signer keeps nothing from one signature to the next. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

const LIMITS = { openFiles: 4096, dataBytes: 1024 ** 3 } as const;

const START = { boundMs: 60_000, because: 'because it did not get ready in time' };

/** The interval of looking whether the signer hangs, and the bound on its answer, in milliseconds. */
const PING_INTERVAL_MS = 10_000;
const PING = { boundMs: 2 * PING_INTERVAL_MS, because: 'because it did not answer' };

/** Limits of the back-off before a restart. */
const RESTART_BACKOFF = { firstMs: 50, maxMs: 10_000, jitter: 0 };

/** A process that signs with keys of signer processes. */
export interface SigningProcess {
  /** Settles when the process has exited. */
  readonly exited: Promise<unknown>;
  /** Sends the channel to a restarted signer to the client, and closes this process's copy. */
  giveChannel(channel: Socket, signer: number): void;
  /** Kills the process, which violated the protocol of the signer, and so may be taken over. */
  kill(because: string): void;
}

/** The right of one process to signatures of one signer process. */
export interface KeyAccess {
  /** Lets the process use these keys, and no others, while an input runs in it; null where none runs. */
  allow(keys: readonly number[] | null): void;
}

interface Client {
  readonly process: SigningProcess;
  /** The numbers of all keys that it may be allowed while it lives. */
  readonly keys: readonly number[];
  /** The keys of the input that runs in it; null where none runs. */
  allowed: readonly number[] | null;
}

/** A key in use: its credential, and the certificates that it was loaded with. */
interface UsedKey {
  readonly settings: CredentialSettings;
  readonly certificateChain: readonly string[];
  /** Has it loaded again later. */
  readonly retry: () => void;
}

type SignerChild = Child<ToSigner, SignerAnswer, ProtocolViolation | KeyQuestion>;

export interface SupervisorOptions {
  /** The number of the process. */
  readonly number: number;
  /** The kind of its keys. */
  readonly keyKind: SignerSettings['type'];
  /** The folder of the state of signers. */
  readonly stateDir: string;
  readonly launcher: Launcher;
  readonly log: Log;
}

/**
 * Supervises a process that holds signing keys, and alone reads their files. It is restarted with exponential back-off when it
 * exits or hangs; its clients get new channels and send their pending requests again. A key lives while it is held, and while a
 * client lives that may use it.
 */
export class SignerSupervisor {
  readonly #options: SupervisorOptions;
  readonly #clients = new Map<number, Client>();
  readonly #keys = new Map<number, UsedKey>();
  /** The numbers of the keys that are in force, or are being loaded or checked. */
  readonly #held = new Set<number>();
  /** A process answers one request at a time. */
  readonly #asks = new Semaphore(1);
  #nextClientId = 1;
  #child: SignerChild | null = null;
  /** The way in which the last process exited, or why there is none. It ends the sentence "the process exited …". */
  #exitCause = '';
  #isRetired = false;
  #isClosed = false;
  /** Exits since a process last got ready. */
  #exitCount = 0;
  #timer: NodeJS.Timeout | undefined;
  readonly #pings: NodeJS.Timeout;

  /** Starts a signer process without keys. */
  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#pings = setInterval(() => void this.#ping(), PING_INTERVAL_MS).unref();
    void this.#begin();
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * Has the signer load a credential as its files are now, and holds its key. It keeps the number of the current one where it has
   * the same certificates. Throws an AppError where it cannot be loaded, `SIGNATURE_FAILED` where the signer exits meanwhile. Calls
   * `retry` where a restarted signer cannot load it: a device may be away, and other keys are served meanwhile.
   */
  async load(
    settings: CredentialSettings,
    current: CredentialDescription | null,
    retry: () => void,
  ): Promise<CredentialDescription> {
    const key = this.#freeKey();
    this.#held.add(key);
    let credential: CredentialDescription | null = null;
    try {
      const answer = await this.#load(this.#orderOf(settings, current, key));
      if (answer === null)
        throw new AppError('SIGNATURE_FAILED', { problem: `the signer process exited ${this.#exitCause}` });
      if ('error' in answer) throw AppError.fromData(answer.error);
      assert('credential' in answer, 'any certificates are wanted');
      credential = answer.credential;
      this.#keys.set(credential.key, { settings, certificateChain: credential.certificateChain, retry });
      return credential;
    } finally {
      if (credential?.key !== key) this.release(key);
    }
  }

  /** Lets go of a key, which the signer drops when no client is left that may use it. */
  release(key: number): void {
    this.#held.delete(key);
    this.#dropKeys();
  }

  /**
   * Connects a process through this end of its channel; null where it could not be started. It may use no key yet, and later some
   * of these.
   */
  attach(process: SigningProcess, channel: Socket | null, keys: readonly number[]): KeyAccess {
    const clientId = this.#nextClientId++;
    const client: Client = { process, keys, allowed: null };
    if (channel !== null) {
      this.#clients.set(clientId, client);
      void process.exited.then(() => {
        this.#clients.delete(clientId);
        this.#dropKeys();
      });
      this.#child?.send({ type: 'client', clientId }, stopReading(channel));
    }
    return {
      allow: (allowed) => {
        assert(
          allowed === null || allowed.every((key) => keys.includes(key)),
          'an input signs with an identity that was in force when its worker was started',
        );
        client.allowed = allowed;
      },
    };
  }

  /** Closes the signer as soon as its last key is let go of. */
  retire(): void {
    this.#isRetired = true;
    this.#dropKeys();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#pings);
    clearTimeout(this.#timer);
    this.#child?.kill();
  }

  /** Has the signer drop the keys that nobody uses any more. */
  #dropKeys(): void {
    const used = this.#usedKeys();
    for (const key of this.#keys.keys()) if (!used.has(key)) this.#keys.delete(key);
    this.#child?.send({ type: 'keep', keys: [...used] });
    if (this.#isRetired && used.size === 0) this.close();
  }

  #usedKeys(): Set<number> {
    return new Set([...this.#held, ...Array.from(this.#clients.values(), ({ keys }) => keys).flat()]);
  }

  /** Returns the lowest number that no key in use has. */
  #freeKey(): number {
    const used = this.#usedKeys();
    let key = 0;
    while (used.has(key)) key += 1;
    return key;
  }

  #launch(): SignerChild {
    const { launcher, keyKind, number } = this.#options;
    const clients = [...this.#clients.values()];
    const child: SignerChild = new Child(launcher, PROCESS_URL, {
      execArgv: [YOUNG_GENERATION],
      limits: LIMITS,
      aws: keyKind === 'aws_kms',
      vendor: keyKind === 'pkcs11',
      ...(keyKind === 'pkcs11' && { environment: { UV_THREADPOOL_SIZE: String(SIGNER_THREADS) } }),
      pipeCount: clients.length,
      onEvent: (event) => this.#take(event, child),
    });
    this.#child = child;
    for (const [index, { process }] of clients.entries()) {
      const channel = child.channel(index);
      if (channel !== null) process.giveChannel(stopReading(channel), number);
    }
    void child.exited.then(({ cause }) => this.#restartLater(cause));
    return child;
  }

  #take(event: ProtocolViolation | KeyQuestion, child: SignerChild): void {
    if ('problem' in event) {
      return this.#clients.get(event.clientId)?.process.kill(`because ${event.problem}`);
    }
    const { askingClientId: clientId, key } = event;
    const client = this.#clients.get(clientId);
    const isAllowed = client?.allowed?.includes(key);
    // An input that asks for another key than its own violates the protocol; a request of one that has ended does not.
    if (isAllowed === false) client?.process.kill('because it asked for a key that its input may not use');
    else child.send({ type: 'decide', clientId, isAllowed: isAllowed === true });
  }

  /** Starts a process, and has it load the keys in use. Never rejects. */
  async #begin(): Promise<void> {
    let answer: SignerAnswer | null;
    const keys = [...this.#keys];
    try {
      const child = this.#launch();
      const clientIds = [...this.#clients.keys()];
      const orders = keys.map(([key, used]) => this.#orderOf(used.settings, { ...used, key }, null));
      answer = await this.#asks.run(() => child.ask({ type: 'start', clientIds, keys: orders }, START));
    } catch (error) {
      // The system gives no process now, for want of memory or descriptors.
      return this.#restartLater((error as Error).message);
    }
    if (answer === null) return;
    this.#exitCount = 0;
    for (const [index, loaded] of answer.entries()) {
      const [, used] = itemAt(keys, index);
      if ('error' in loaded) used.retry();
      this.#tellOfLostKey(loaded, used);
    }
  }

  #orderOf(settings: CredentialSettings, current: KeyOrder['current'], key: number | null): KeyOrder {
    const { number, stateDir } = this.#options;
    const known = current && { key: current.key, certificateChain: current.certificateChain };
    return { settings, stateDir, process: number, current: known, key };
  }

  async #load(key: KeyOrder): Promise<LoadAnswer | null> {
    const answer = await this.#asks.run(async () => {
      const child = this.#child;
      return child?.isAlive === true ? await child.ask({ type: 'load', key }, START) : null;
    });
    return answer && itemAt(answer, 0);
  }

  #restartLater(cause: string): void {
    if (this.#isClosed) return;
    this.#exitCause = cause;
    clearTimeout(this.#timer);
    const { number, keyKind, log } = this.#options;
    this.#exitCount += 1;
    const pauseMs = backoffMs(this.#exitCount, RESTART_BACKOFF);
    const fields = { process: number, key: keyKind, exit_cause: cause, pause_ms: pauseMs };
    log.warn(fields, 'the signer process exited and is restarted');
    this.#timer = setTimeout(() => void this.#begin(), pauseMs);
  }

  /** Tells of a key that clients may still ask for, and get no signature with. */
  #tellOfLostKey(loaded: LoadAnswer, { settings: { certificatePath: file } }: UsedKey): void {
    if ('isOther' in loaded) {
      this.#options.log.warn({ file }, 'the signer process was restarted, and its files hold another signing identity');
    } else if ('error' in loaded) {
      const { reason, message: problem } = AppError.fromData(loaded.error);
      this.#options.log.error({ reason, file, problem }, 'the signer process cannot load the signing identity');
    }
  }

  /** Asks a signer that has nothing to answer whether it is there; one that does not say so is killed. */
  async #ping(): Promise<void> {
    const child = this.#child;
    if (child?.isAlive === true && this.#asks.available > 0)
      await this.#asks.run(() => child.ask({ type: 'ping' }, PING));
  }
}
