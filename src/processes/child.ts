import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { exitOf, type Launcher, type LaunchOptions } from './launcher.ts';
import { FIRST_CHANNEL, type ToService } from './parent.ts';
import { type TreeUsage, usageOfTree } from './process-tree.ts';

/** The exit of a process. */
export interface Exit {
  /** Ends the sentence "the process exited …". */
  readonly cause: string;
  readonly signal: NodeJS.Signals | null;
  /** True where the service killed it. */
  readonly wasKilled: boolean;
}

/** Limits of a request. The process is killed when it exceeds one. */
export interface Bounds {
  /** Time until the answer, or until the watch is renewed, in milliseconds. */
  readonly boundMs: number;
  /** Ends the sentence "the process exited …" where that time is over. */
  readonly because: string;
  /** Returns what a sample of the process tree, `elapsedMs` after the one before, is over; null where it is over nothing. */
  readonly overBudget?: (usage: TreeUsage | null, elapsedMs: number) => string | null;
}

interface ChildOptions<Event> extends LaunchOptions {
  /** Handles the messages of the process that are no answers. */
  readonly onEvent?: (event: Event) => void;
}

/** The process tree is sampled this often while a request has a budget. */
const SAMPLE_INTERVAL_MS = 250;

/** A sample counts as no more time than this: while the service itself is held up, the process may be, too. */
const MAX_SAMPLE_MS = 1_000;

/** Ends the sentence "the process exited …" where its messages are not of the protocol. */
export const MALFORMED = 'because it sent a message that cannot be read';

/** Ends the sentence "the process exited …" where no other reason is given. */
const NOT_NEEDED = 'because it was no longer needed';

/**
 * A child process of the service (`serveParent` is the other side). It answers one request at a time, within bounds, and keeps
 * the service alive only while one is open.
 */
export class Child<Request, Answer, Event = never> {
  readonly #child: ChildProcess;
  readonly #leadsGroup: boolean;
  readonly #onEvent: (event: Event) => void;
  readonly #exited = Promise.withResolvers<Exit>();
  #exit: Exit | null = null;
  #killedBecause: string | null = null;
  #answer: PromiseWithResolvers<Answer | null> | null = null;
  #watchdog: NodeJS.Timeout | undefined;
  #idleTimer: NodeJS.Timeout | undefined;

  /** Starts the process. Throws where the system gives none; where it tells that later, the process exits. */
  constructor(launcher: Launcher, entry: URL, { onEvent = () => undefined, ...options }: ChildOptions<Event>) {
    this.#leadsGroup = options.detached ?? false;
    this.#onEvent = onEvent;
    this.#child = launcher.launch(entry, options);
    this.#child.on('message', (message) => this.#receive(message as ToService<Answer, Event>));
    this.#child.on('error', ({ message }) => this.#recordExit(`because of an error (${message})`, null));
    this.#child.on('exit', (code, signal) => void this.#handleExit(code, signal));
    this.#keepAlive(false);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** True until the process has exited, or was killed. */
  get isAlive(): boolean {
    return this.#exit === null && this.#killedBecause === null;
  }

  /** The exit of the process; null while it runs. */
  get exit(): Exit | null {
    return this.#exit;
  }

  /** Resolves when the process is gone, and its last message was taken. */
  get exited(): Promise<Exit> {
    return this.#exited.promise;
  }

  /** Returns this process's end of a channel beside that of messages (`pipeCount`); null where the process was not started. */
  channel(index = 0): Socket | null {
    return (this.#child.stdio[FIRST_CHANNEL + index] as Socket | null | undefined) ?? null;
  }

  /** Sends a message, with a channel, which is closed here then. Ignores that the process is gone: its exit tells that. */
  send(message: Request, channel?: Socket): void {
    if (this.#child.connected) this.#child.send(message as object, channel, undefined, () => channel?.destroy());
    else channel?.destroy();
  }

  /** Sends a request, and returns the answer; null where the process exits before. */
  async ask(request: Request, { boundMs, because, overBudget }: Bounds): Promise<Answer | null> {
    assert(this.#answer === null, 'a process has one request at a time');
    if (this.#exit !== null) return null;
    const answer = Promise.withResolvers<Answer | null>();
    this.#answer = answer;
    clearTimeout(this.#idleTimer);
    this.#keepAlive(true);
    this.watch(boundMs, because);
    const sampling = overBudget && setInterval(this.#sampler(overBudget), SAMPLE_INTERVAL_MS);
    try {
      this.send(request);
      return await answer.promise;
    } finally {
      clearInterval(sampling);
      clearTimeout(this.#watchdog);
      this.#answer = null;
      this.#keepAlive(false);
    }
  }

  /**
   * Sends the only request of a process, which is killed afterwards. Throws where it exits before it answers; `task` begins the
   * message.
   */
  async askOnce(task: string, request: Request, bounds: Bounds): Promise<Answer> {
    try {
      const answer = await this.ask(request, bounds);
      if (answer === null) throw new Error(`${task} ended early: its process exited ${this.#exit?.cause}`);
      return answer;
    } finally {
      this.kill();
    }
  }

  /** Kills the process after a while, unless its request is answered, or it is watched anew, before. Ignored without a request. */
  watch(boundMs: number, because: string): void {
    if (this.#answer === null) return;
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.kill(because), boundMs);
  }

  /** Restarts the watchdog. */
  renewWatch(): void {
    this.#watchdog?.refresh();
  }

  /** Calls a function after a time without a request. The process's exit or a new request cancels it. */
  whenIdle(idleMs: number, then: () => void): void {
    if (!this.isAlive) return;
    clearTimeout(this.#idleTimer);
    this.#idleTimer = setTimeout(then, idleMs).unref();
  }

  /** Kills the process and, where it leads a group, what it started. `because` ends the sentence "the process exited …". */
  kill(because = NOT_NEEDED): void {
    this.#killedBecause ??= because;
    // Whoever waits for the exit sees it.
    if (this.#exit === null) this.#keepAlive(true);
    this.#killNow();
  }

  /** Sends the message that has the process exit, kills it where it does not, and waits until it is gone. */
  async quit(message: Request, boundMs: number, because: string): Promise<void> {
    this.#keepAlive(true);
    const timer = setTimeout(() => this.kill(because), boundMs);
    this.send(message);
    await this.#exited.promise;
    clearTimeout(timer);
  }

  #killNow(): void {
    const { pid } = this.#child;
    if (!this.#leadsGroup || pid === undefined) return void this.#child.kill('SIGKILL');
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // Nothing of the group is left.
    }
  }

  /** Kills a process whose message is none: it was taken over. */
  #receive(message: ToService<Answer, Event>): void {
    try {
      if ('event' in message) this.#onEvent(message.event);
      else if (message.answer === null || message.answer === undefined) throw new Error('an answer is missing');
      else this.#answer?.resolve(message.answer);
    } catch {
      this.kill(MALFORMED);
    }
  }

  #sampler(overBudget: (usage: TreeUsage | null, elapsedMs: number) => string | null): () => void {
    let sampledAtMs = performance.now();
    return () => {
      const nowMs = performance.now();
      const elapsedMs = Math.min(nowMs - sampledAtMs, MAX_SAMPLE_MS);
      sampledAtMs = nowMs;
      const over = overBudget(usageOfTree(this.pid ?? 0), elapsedMs);
      if (over !== null) this.kill(`because it was over its budget (${over})`);
    };
  }

  /** Waits for the last messages of the process, which may still lie in the channel when its exit is seen. */
  async #handleExit(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    if (this.#leadsGroup) this.#killNow();
    if (this.#child.connected) await once(this.#child, 'disconnect');
    const end = exitOf(code, signal);
    this.#recordExit(
      end.signal === null ? `with the exit code ${end.code}` : `by the signal ${end.signal}`,
      end.signal,
    );
  }

  #recordExit(cause: string, signal: NodeJS.Signals | null): void {
    if (this.#exit !== null) return;
    clearTimeout(this.#watchdog);
    clearTimeout(this.#idleTimer);
    this.#exit = { cause: this.#killedBecause ?? cause, signal, wasKilled: this.#killedBecause !== null };
    this.#exited.resolve(this.#exit);
    this.#answer?.resolve(null);
  }

  #keepAlive(isBusy: boolean): void {
    const { channel } = this.#child;
    if (isBusy) {
      this.#child.ref();
      channel?.ref();
    } else {
      this.#child.unref();
      channel?.unref();
    }
  }
}
