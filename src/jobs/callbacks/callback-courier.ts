import { type JobCallback, SIGNATURE_HEADER } from '#contract/job-callback.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { type JobSnapshot, jobJson } from '../job.ts';
import type { Log } from '../log.ts';
import type { DueCallback } from '../store/callbacks.ts';
import type { JobStore } from '../store/job-store.ts';
import { nextAttemptAt } from './callback-schedule.ts';
import { signCallback } from './callback-signature.ts';

/** Callbacks of this node that are on their way at once; and to one receiver, so that one that hangs holds up no other. */
const MAX_AT_ONCE = 32;
const MAX_PER_RECEIVER = 8;

/** A callback whose receiver has its share already is looked at again after so long. */
const BUSY_PAUSE_MS = 1_000;

/** A callback that was taken and of which nothing is heard is taken again after its bound and this time. */
const LEASE_MARGIN_MS = 30_000;

/** Jobs that end at about the same time are looked at together. */
const LOOK_DELAY_MS = 50;

/** The problem that trying again does not solve. */
const DENIED = 'HTTP_ADDRESS_DENIED' satisfies Reason;

/** A larger body goes without the results. */
const MAX_BODY_BYTES = 1024 * 1024;

/** How long callbacks may take for things, in milliseconds. */
export interface CallbackBounds {
  /** A receiver must have answered within this time. */
  readonly attemptMs: number;
  /** The pause after the first attempt that failed; the later ones are longer. */
  readonly firstPauseMs: number;
  /** What is due is looked for so often; for a job that ends here that is not waited for. */
  readonly lookIntervalMs: number;
}

const CALLBACK_BOUNDS: CallbackBounds = { attemptMs: 15_000, firstPauseMs: 5_000, lookIntervalMs: 5_000 };

/** Posts a body and resolves with the status of the answer, whatever it is. Redirects are not followed. */
export type Post = (url: string, message: CallbackMessage, signal: AbortSignal) => Promise<number>;

/** `failed`: it is tried again. */
export type CallbackOutcome = 'delivered' | 'failed' | 'given_up';

export interface CallbackMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface CallbackCourierOptions {
  readonly store: Pick<JobStore, 'claimCallbacks' | 'delayCallback' | 'endCallback' | 'findJob'>;
  /** Undefined where `callbacks.secret` is no longer set; what was accepted then waits for it, for a day at most. */
  readonly secret: string | undefined;
  readonly post: Post;
  readonly log: Log;
  /** Told of every attempt. */
  readonly sent: (outcome: CallbackOutcome) => void;
  readonly bounds?: Partial<CallbackBounds>;
}

/**
 * Sends the results of ended jobs to where their requests asked for them, at least once each. What is due stands in the
 * store, so it outlives this process; several nodes share the work.
 */
export class CallbackCourier {
  readonly #options: CallbackCourierOptions;
  readonly #bounds: CallbackBounds;
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #onTheirWay = new Set<Promise<void>>();
  readonly #byReceiver = new Map<string, number>();
  #soon: NodeJS.Timeout | undefined;
  #looking = false;
  #lookAgain = false;

  constructor(options: CallbackCourierOptions) {
    this.#options = options;
    this.#bounds = { ...CALLBACK_BOUNDS, ...options.bounds };
    this.#timer = setInterval(() => void this.look(), this.#bounds.lookIntervalMs).unref();
  }

  /** Looks in a moment: jobs that end at about the same time share the look. */
  lookSoon(): void {
    this.#soon ??= setTimeout(() => {
      this.#soon = undefined;
      void this.look();
    }, LOOK_DELAY_MS).unref();
  }

  /** Takes what is due, as far as there is room. Never rejects. */
  async look(): Promise<void> {
    this.#lookAgain = true;
    if (this.#looking) return;
    this.#looking = true;
    while (this.#lookAgain && !this.#stop.signal.aborted) {
      this.#lookAgain = false;
      await this.#takeWhatIsDue();
    }
    this.#looking = false;
  }

  /** Gives up what is on its way; it is taken again after its lease. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#soon);
    this.#stop.abort(new Error('the service is stopping'));
    await Promise.all(this.#onTheirWay);
  }

  async #takeWhatIsDue(): Promise<void> {
    const room = MAX_AT_ONCE - this.#onTheirWay.size;
    if (room <= 0) return;
    try {
      const leaseMs = this.#bounds.attemptMs + LEASE_MARGIN_MS;
      for (const callback of await this.#options.store.claimCallbacks(room, leaseMs)) this.#send(callback);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.log.error({ err: error }, 'callbacks could not be looked for');
    }
  }

  #send(callback: DueCallback): void {
    const sending = this.#inTurn(callback)
      .catch((error: unknown) => {
        if (this.#stop.signal.aborted) return;
        this.#options.log.error({ job_id: callback.jobId, err: error }, 'a callback could not be recorded');
      })
      .finally(() => {
        this.#onTheirWay.delete(sending);
        if (!this.#stop.signal.aborted) void this.look();
      });
    this.#onTheirWay.add(sending);
  }

  async #inTurn(callback: DueCallback): Promise<void> {
    const receiver = new URL(callback.url).origin;
    const others = this.#byReceiver.get(receiver) ?? 0;
    if (others >= MAX_PER_RECEIVER) {
      return this.#options.store.delayCallback(callback.jobId, new Date(Date.now() + BUSY_PAUSE_MS), 'unsent');
    }
    this.#byReceiver.set(receiver, others + 1);
    try {
      await this.#deliver(callback);
    } finally {
      const left = (this.#byReceiver.get(receiver) ?? 1) - 1;
      if (left > 0) this.#byReceiver.set(receiver, left);
      else this.#byReceiver.delete(receiver);
    }
  }

  async #deliver(callback: DueCallback): Promise<void> {
    const { store, log, sent } = this.#options;
    const { jobId, attempts, url } = callback;
    const job = await store.findJob(jobId);
    if (job === null) return;
    const problem = await this.#attempt(url, job);
    if (this.#stop.signal.aborted && problem !== null) return;
    // The address may be a secret from its first slash on.
    const line = { job_id: jobId, receiver: new URL(url).origin, attempt: attempts };
    if (problem === null) {
      await store.endCallback(jobId, 'delivered');
      log.info(line, 'callback delivered');
      return sent('delivered');
    }
    const failed = { attempts, endedAtMs: Date.parse(callback.endedAt), firstPauseMs: this.#bounds.firstPauseMs };
    const nextMs = problem === DENIED ? null : nextAttemptAt(failed, Date.now());
    if (nextMs === null) {
      await store.endCallback(jobId, 'given_up');
      const because = problem === DENIED ? 'its address is denied' : 'its receiver did not take it for a day';
      log.error({ ...line, problem }, `callback given up: ${because}`);
      return sent('given_up');
    }
    await store.delayCallback(jobId, new Date(nextMs), 'sent');
    log.warn({ ...line, problem, next_attempt_at: new Date(nextMs).toISOString() }, 'callback failed');
    sent('failed');
  }

  /** What was wrong with an attempt; null where the receiver took it. */
  async #attempt(url: string, job: JobSnapshot): Promise<string | null> {
    const { secret, post } = this.#options;
    if (secret === undefined) return 'callbacks.secret is not set any more';
    const body = bodyOf(job);
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      [SIGNATURE_HEADER]: signCallback(body, secret, Date.now()),
    };
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(this.#bounds.attemptMs)]);
    try {
      const status = await post(url, { headers, body }, signal);
      return status >= 200 && status < 300 ? null : `the receiver answered ${status}`;
    } catch (error) {
      return problemOf(error, signal);
    }
  }
}

/** The name of an error and its code: its message may repeat the address. */
function problemOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'the receiver did not answer in time';
  if (error instanceof AppError) return error.reason;
  const { name, code } = error as { name?: string; code?: string };
  return `the request failed (${code ?? name ?? 'unknown'})`;
}

function bodyOf(job: JobSnapshot): string {
  const whole = jobJson(job);
  if (Buffer.byteLength(whole) <= MAX_BODY_BYTES) return whole;
  return jobJson({ ...job, resultsJson: '[]' }, { results_omitted: true } satisfies Partial<JobCallback>);
}
