import assert from 'node:assert';
import type { ChildProcess } from 'node:child_process';
import type { Socket } from 'node:net';
import { extname } from 'node:path';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import type { Launcher } from '#processes/launcher.ts';
import { stopReading } from './signer-frames.ts';
import { FIRST_CHANNEL, type FromSigner, type ToSigner } from './signer-messages.ts';
import type { IdentityDescription } from './signing-identity.ts';

/** In a build, every module is JavaScript. */
const PROCESS_URL = new URL(`./run-signer${extname(import.meta.url)}`, import.meta.url);

/** Young objects get little memory, in MiB: what the signer holds is gone with each signature. */
const YOUNG_GENERATION = '--max-semi-space-size=1';

const LIMITS = { openFiles: 4096, dataBytes: 1024 ** 3 } as const;

const START_TIMEOUT_MS = 60_000;

/** A signer that leaves two pings unanswered hangs, and is killed. */
const PING_INTERVAL_MS = 10_000;
const MAX_UNANSWERED_PINGS = 2;

/** The pause before a restart doubles each time, from the first to the last of these. */
const MIN_RESTART_PAUSE_MS = 50;
const MAX_RESTART_PAUSE_MS = 10_000;

/** A process that signs with the key of the signer process. */
export interface SignerClient {
  /** Settles when the process is gone. */
  readonly ended: Promise<void>;
  /** Gives it the channel to a new signer. The channel is to be closed here. */
  giveChannel(channel: Socket): void;
}

interface SignerLog {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface SignerProcessOptions {
  readonly config: Config;
  readonly launcher: Launcher;
  readonly log: SignerLog;
}

/**
 * The process that holds the signing key, and alone reads its file. It is started again, with growing pauses, when it ends or
 * hangs; what its clients asked for meanwhile is asked again over new channels.
 */
export class SignerProcess {
  readonly #options: SignerProcessOptions;
  readonly #clients = new Set<SignerClient>();
  #child: ChildProcess;
  #identity: IdentityDescription | null = null;
  #isClosed = false;
  #pauseMs = MIN_RESTART_PAUSE_MS;
  #unansweredPings = 0;
  #restart: NodeJS.Timeout | undefined;
  readonly #pings: NodeJS.Timeout;

  private constructor(options: SignerProcessOptions) {
    this.#options = options;
    this.#child = this.#launch();
    this.#pings = setInterval(() => this.#ping(), PING_INTERVAL_MS).unref();
  }

  /** Starts the signer. Rejects with an AppError that names the file, what is wrong with it, and the remedy. */
  static async start(options: SignerProcessOptions): Promise<SignerProcess> {
    const signer = new SignerProcess(options);
    const { promise, resolve, reject } = Promise.withResolvers<IdentityDescription>();
    const timer = setTimeout(() => reject(new Error('the signer process did not start in time')), START_TIMEOUT_MS);
    const ended = (code: number | null, signal: NodeJS.Signals | null) =>
      reject(new Error(`the signer process ended before it was ready (${signal ?? code})`));
    signer.#child.once('exit', ended).once('error', reject);
    signer.#child.on('message', (message: FromSigner) => {
      if (message.type === 'ready') resolve(message.identity);
      if (message.type === 'failed') reject(AppError.fromData(message.error));
    });
    try {
      signer.#identity = await promise;
      signer.#child.off('exit', ended);
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
    assert(this.#identity !== null, 'a signer is used when it has started');
    return this.#identity;
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Connects a process that was started with a pipe to this end of it. */
  attach(client: SignerClient, channel: Socket): void {
    this.#clients.add(client);
    void client.ended.then(() => this.#clients.delete(client));
    if (this.#child.connected) send(this.#child, { type: 'client' }, stopReading(channel));
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
    const clients = [...this.#clients];
    const child = launcher.launch(PROCESS_URL, {
      execArgv: [YOUNG_GENERATION],
      limits: LIMITS,
      pipeCount: clients.length,
    });
    const order = {
      signing: config.signing,
      dataDir: config.jobs.data_dir,
      channelCount: clients.length,
      expected: this.#identity?.certificateChain ?? null,
    };
    send(child, { type: 'start', order });
    for (const [index, client] of clients.entries()) {
      const channel = child.stdio[FIRST_CHANNEL + index];
      if (channel != null) client.giveChannel(stopReading(channel as Socket));
    }
    return child;
  }

  /** Watches a signer that took over, or is to. */
  #supervise(): void {
    const child = this.#child;
    this.#unansweredPings = 0;
    child.on('message', (message: FromSigner) => {
      this.#unansweredPings = 0;
      if (message.type === 'ready') this.#pauseMs = MIN_RESTART_PAUSE_MS;
      if (message.type !== 'failed') return;
      const { message: problem } = AppError.fromData(message.error);
      this.#options.log.error({ problem }, 'the signer process cannot load the signing identity');
      child.kill('SIGKILL');
    });
    // Without a process there is no exit either.
    child.on('error', (error) => this.#startAgain(error.message));
    child.on('exit', (code, signal) => this.#startAgain(signal ?? `exit code ${code}`));
  }

  #startAgain(how: string): void {
    if (this.#isClosed || this.#restart !== undefined) return;
    this.#options.log.warn({ how, pause_ms: this.#pauseMs }, 'the signer process ended and is started again');
    this.#restart = setTimeout(() => {
      this.#restart = undefined;
      this.#child = this.#launch();
      this.#supervise();
    }, this.#pauseMs);
    this.#pauseMs = Math.min(this.#pauseMs * 2, MAX_RESTART_PAUSE_MS);
  }

  #ping(): void {
    if (!this.#child.connected) return;
    if (this.#unansweredPings >= MAX_UNANSWERED_PINGS) this.#child.kill('SIGKILL');
    this.#unansweredPings += 1;
    send(this.#child, { type: 'ping' });
  }
}

/** A process that is gone cannot be told; its exit says so. */
function send(child: ChildProcess, message: ToSigner, channel?: Socket): void {
  child.send(message, channel, undefined, () => channel?.destroy());
}
