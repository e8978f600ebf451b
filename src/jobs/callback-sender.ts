import { createHmac } from 'node:crypto';
import { isIP } from 'node:net';
import type { Agent } from 'undici';
import { backoffMs } from '#concurrency/retry.ts';
import type { Config } from '#config/config.ts';
import { type JobCallback, SIGNATURE_HEADER } from '#contract/job-callback.ts';
import { AppError } from '#errors/app-error.ts';
import { createGuardedAgent, DeniedNetworks, exchange } from '#inputs/guarded-request.ts';
import type { Log } from '#telemetry/logger.ts';
import { type JobSnapshot, jobJson } from './job.ts';
import { type DueCallback, type JobStore, MAX_CALLBACK_PAUSE_MS } from './store/job-store.ts';

/** Bound on the time during which a receiver sends nothing. */
const IDLE_TIMEOUT_MS = 10_000;

/** A signed callback. */
interface CallbackMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Posts a message and resolves with the status of the response, whatever it is. Redirects are not followed. Throws
 * `HTTP_ADDRESS_DENIED` for a receiver in a denied network, the signal's reason, or the error of the connection.
 */
export type Post = (url: string, message: CallbackMessage, signal: AbortSignal) => Promise<number>;

/**
 * Returns a function that posts callbacks under the address rules of HTTP inputs. It reads only the status of a response.
 * The connection pool is opened with the first callback.
 */
export function guardedPost(denied: DeniedNetworks): Post {
  let agent: Promise<Agent> | undefined;
  return async (url, { headers, body }, signal) => {
    agent ??= createGuardedAgent({ denied });
    const request = { method: 'POST', url: new URL(url), headers, body, idleTimeoutMs: IDLE_TIMEOUT_MS } as const;
    const answer = await exchange(await agent, request, signal);
    answer.body.cancel();
    return answer.status;
  };
}

/**
 * Refuses a callback that could never be sent. Throws `CALLBACKS_OFF` when no secret is configured, and `CALLBACK_DENIED`
 * when the host is an IP address in a denied network. A host name is resolved and checked when the callback is sent.
 */
export function admitCallback(url: string, { callbacks, input_resolvers: { http } }: Config): void {
  const location = { field: 'callback_url' };
  if (callbacks.secret === undefined) throw new AppError('CALLBACKS_OFF', {}, location);
  const { hostname } = new URL(url);
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) === 0 || !new DeniedNetworks(http.deny_networks).denies(address)) return;
  throw new AppError('CALLBACK_DENIED', { host: hostname }, location);
}

/** Concurrent callbacks of this node; and to one receiver, so that one that hangs does not delay the others. */
const MAX_CONCURRENT = 32;
const MAX_PER_RECEIVER = 8;

/** The delay of a callback whose receiver has `MAX_PER_RECEIVER` already, in milliseconds. */
const BUSY_DELAY_MS = 1_000;

/** The time by which the lease of a callback is longer than an attempt, in milliseconds. */
const LEASE_MARGIN_MS = 30_000;

/** The delay before polling after a job has finished, in milliseconds, so that several jobs share a query. */
const POLL_DELAY_MS = 50;

/** A larger body is sent without the results, in bytes. */
const MAX_BODY_BYTES = 1024 * 1024;

/** Timeouts and intervals of callbacks, in milliseconds. */
export interface CallbackLimits {
  /** A receiver must have answered within this time. */
  readonly attemptMs: number;
  /** The pause after the first attempt that failed; the later ones are longer. */
  readonly firstPauseMs: number;
  /** The interval of polling for due callbacks; those of jobs that finish here are sent at once. */
  readonly pollIntervalMs: number;
}

const CALLBACK_LIMITS: CallbackLimits = { attemptMs: 15_000, firstPauseMs: 5_000, pollIntervalMs: 5_000 };

/** The result of one attempt. `denied` is permanent, `failed` is not. `problem` is for the log. */
type AttemptResult = { readonly kind: 'accepted' } | { readonly kind: 'denied' | 'failed'; readonly problem: string };

/** The outcome of an attempt, as it is counted. `failed`: the callback is sent again. */
export type CallbackOutcome = 'delivered' | 'failed' | 'given_up';

interface CallbackSenderOptions {
  readonly store: Pick<JobStore, 'leaseCallbacks' | 'postponeCallback' | 'closeCallback' | 'findJob'>;
  /** Undefined where `callbacks.secret` is no longer set; what was accepted then waits for it, for a day at most. */
  readonly secret: string | undefined;
  readonly post: Post;
  readonly log: Log;
  /** Called after every attempt. */
  readonly sent: (outcome: CallbackOutcome) => void;
  readonly limits?: Partial<CallbackLimits>;
}

/**
 * Sends the results of finished jobs to the addresses in their requests, at least once each. The store has the due callbacks,
 * so they survive this process; several nodes share the work.
 */
export class CallbackSender {
  readonly #options: CallbackSenderOptions;
  readonly #limits: CallbackLimits;
  readonly #stop = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** The callbacks that are being sent, each with its receiver; and those that are being postponed, with null. */
  readonly #sending = new Map<Promise<void>, string | null>();
  #pollTimer: NodeJS.Timeout | undefined;
  #isPolling = false;
  #mustPollAgain = false;

  constructor(options: CallbackSenderOptions) {
    this.#options = options;
    this.#limits = { ...CALLBACK_LIMITS, ...options.limits };
    this.#timer = setInterval(() => void this.poll(), this.#limits.pollIntervalMs).unref();
  }

  /** Polls after `POLL_DELAY_MS`. */
  pollSoon(): void {
    this.#pollTimer ??= setTimeout(() => {
      this.#pollTimer = undefined;
      void this.poll();
    }, POLL_DELAY_MS).unref();
  }

  /** Leases and sends due callbacks, up to the limit of concurrent ones. Never rejects. */
  async poll(): Promise<void> {
    this.#mustPollAgain = true;
    if (this.#isPolling) return;
    this.#isPolling = true;
    while (this.#mustPollAgain && !this.#stop.signal.aborted) {
      this.#mustPollAgain = false;
      await this.#sendDue();
    }
    this.#isPolling = false;
  }

  /** Aborts the running callbacks; they are sent again after their leases. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    clearTimeout(this.#pollTimer);
    this.#stop.abort(new Error('the service is stopping'));
    await Promise.all(this.#sending.keys());
  }

  async #sendDue(): Promise<void> {
    const capacity = MAX_CONCURRENT - this.#sending.size;
    if (capacity <= 0) return;
    try {
      const leaseMs = this.#limits.attemptMs + LEASE_MARGIN_MS;
      for (const callback of await this.#options.store.leaseCallbacks(capacity, leaseMs)) this.#send(callback);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#options.log.error({ err: error }, 'due callbacks could not be read');
    }
  }

  #send(callback: DueCallback): void {
    const { jobId, url } = callback;
    const receiver = new URL(url).origin;
    const others = [...this.#sending.values()].filter((one) => one === receiver).length;
    const isBusy = others >= MAX_PER_RECEIVER;
    const sending = (
      isBusy ? this.#options.store.postponeCallback(jobId, BUSY_DELAY_MS, 'unsent') : this.#deliver(callback)
    )
      .catch((error: unknown) => {
        if (this.#stop.signal.aborted) return;
        this.#options.log.error({ job_id: jobId, err: error }, 'a callback could not be recorded');
      })
      .finally(() => {
        this.#sending.delete(sending);
        if (!this.#stop.signal.aborted) void this.poll();
      });
    this.#sending.set(sending, isBusy ? null : receiver);
  }

  async #deliver(callback: DueCallback): Promise<void> {
    const { store, log, sent } = this.#options;
    const { jobId, attempts, url } = callback;
    const job = await store.findJob(jobId);
    if (job === null) return;
    const result = await this.#attempt(url, job);
    if (this.#stop.signal.aborted && result.kind !== 'accepted') return;
    // The address may be a secret from its first slash on.
    const line = { job_id: jobId, receiver: new URL(url).origin, attempt: attempts };
    if (result.kind === 'accepted') {
      await store.closeCallback(jobId, 'delivered');
      log.info(line, 'callback delivered');
      return sent('delivered');
    }
    const { kind, problem } = result;
    const failed = { attempts, finishedAtMs: Date.parse(callback.finishedAt), firstPauseMs: this.#limits.firstPauseMs };
    const nowMs = Date.now();
    const nextMs = kind === 'denied' ? null : nextAttemptAt(failed, nowMs);
    if (nextMs === null) {
      await store.closeCallback(jobId, 'given_up');
      const because = kind === 'denied' ? 'its address is denied' : 'its receiver did not take it for a day';
      log.error({ ...line, problem }, `callback given up: ${because}`);
      return sent('given_up');
    }
    await store.postponeCallback(jobId, nextMs - nowMs, 'sent');
    log.warn({ ...line, problem, next_attempt_at: new Date(nextMs).toISOString() }, 'callback failed');
    sent('failed');
  }

  /** Sends a callback once. Never rejects. */
  async #attempt(url: string, job: JobSnapshot): Promise<AttemptResult> {
    const { secret, post } = this.#options;
    if (secret === undefined) return { kind: 'failed', problem: 'callbacks.secret is not set any more' };
    const body = bodyOf(job);
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      [SIGNATURE_HEADER]: signCallback(body, secret, Date.now()),
    };
    const signal = AbortSignal.any([this.#stop.signal, AbortSignal.timeout(this.#limits.attemptMs)]);
    try {
      const status = await post(url, { headers, body }, signal);
      if (status >= 200 && status < 300) return { kind: 'accepted' };
      return { kind: 'failed', problem: `the receiver answered ${status}` };
    } catch (error) {
      return failureOf(error, signal);
    }
  }
}

/** Returns the result for an error. Its problem has no message of the error, which may repeat the address. */
function failureOf(error: unknown, signal: AbortSignal): AttemptResult {
  if (signal.aborted) return { kind: 'failed', problem: 'the receiver did not answer in time' };
  if (error instanceof AppError) {
    return { kind: error.reason === 'HTTP_ADDRESS_DENIED' ? 'denied' : 'failed', problem: error.reason };
  }
  const { name, code } = error as { name?: string; code?: string };
  return { kind: 'failed', problem: `the request failed (${code ?? name ?? 'unknown'})` };
}

function bodyOf(job: JobSnapshot): string {
  const whole = jobJson(job);
  if (Buffer.byteLength(whole) <= MAX_BODY_BYTES) return whole;
  return jobJson({ ...job, resultsJson: '[]' }, { results_omitted: true } satisfies Partial<JobCallback>);
}

const HOUR_MS = 3600 * 1000;

/** The time after the end of a job during which its callback is retried, in milliseconds. */
const RETRY_PERIOD_MS = 24 * HOUR_MS;

/** A callback that failed. */
interface FailedCallback {
  /** So far. */
  readonly attempts: number;
  /** When its job ended, in milliseconds since 1970. */
  readonly finishedAtMs: number;
  /** The pause after the first attempt. */
  readonly firstPauseMs: number;
}

/** Returns the time of the next attempt in milliseconds since 1970; null when the callback is given up. */
export function nextAttemptAt(
  { attempts, finishedAtMs, firstPauseMs }: FailedCallback,
  nowMs: number,
  random: number = Math.random(),
): number | null {
  const atMs = Math.round(nowMs + backoffMs(attempts, { firstMs: firstPauseMs, maxMs: MAX_CALLBACK_PAUSE_MS }, random));
  return atMs > finishedAtMs + RETRY_PERIOD_MS ? null : atMs;
}

/**
 * Returns the signature of a callback: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. The time is signed too, so that a
 * receiver can refuse what was recorded and sent again.
 */
function signCallback(body: string, secret: string, atMs: number): string {
  const seconds = Math.floor(atMs / 1000);
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}
