import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type Backoff, backoffMs } from '#concurrency/retry.ts';
import type { Log } from '#telemetry/logger.ts';
import { authorityProblem, postBounded } from '../bounded-post.ts';
import { type HeldStatus, NOT_ASKED } from '../staples.ts';
import type { TrustSource } from '../trust-lists.ts';
import { judgeResponse } from './judge-response.ts';
import { MAX_RESPONSE_BYTES, ocspRequestFor } from './ocsp-messages.ts';
import { type Answerable, responderOf, type Unanswerable } from './responder-of.ts';

interface HeldResponseOptions {
  /** The certificates of an identity, in DER, leaf first. */
  readonly chain: readonly Buffer[];
  /** Says who issued the leaf, where the chain ends with it. */
  readonly trust: TrustSource;
  /** The file that the response is kept in, so that a restart needs no responder. */
  readonly file: string;
  readonly log: Log;
  /** Called when the status has changed. */
  readonly changed: () => void;
}

/** Pauses after a responder that gives no response that can be used. */
const FAILURE_BACKOFF: Backoff = { firstMs: 15_000, maxMs: 30 * 60_000 };
/** The pause before a revoked certificate is asked about again. */
const REVOKED_INTERVAL_MS = 60 * 60_000;
/** The shortest and the longest pause. Within the longest a revocation is noticed, however long responses are good for. */
const MIN_PAUSE_MS = 30_000;
const MAX_PAUSE_MS = 24 * 60 * 60_000;

/** The OCSP response of one certificate. It is asked for again when half of its time is over. */
export class HeldResponse {
  readonly #options: HeldResponseOptions;
  readonly #subject: string;
  readonly #stop = new AbortController();
  #status = NOT_ASKED;
  /** The time of the latest response: a revocation must not be undone by a response from before it. */
  #thisUpdate = new Date(0);
  #failures = 0;
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: HeldResponseOptions) {
    this.#options = options;
    this.#subject = new X509Certificate(options.chain[0] as Buffer).subject;
  }

  /** Reads the response of an earlier run, and asks for a newer one soon; where there is none, waits for an answer once. */
  static async open(options: HeldResponseOptions): Promise<HeldResponse> {
    const held = new HeldResponse(options);
    const kept = await readFile(options.file).catch(() => null);
    const isKept = kept !== null && held.#take(kept) !== null;
    held.#askLater(isKept ? MIN_PAUSE_MS : await held.#ask());
    return held;
  }

  get status(): HeldStatus {
    return this.#status;
  }

  get isClosed(): boolean {
    return this.#stop.signal.aborted;
  }

  /** Asks no more. The status stays as it is. */
  close(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
  }

  #askLater(pauseMs: number): void {
    if (this.#stop.signal.aborted) return;
    this.#timer = setTimeout(async () => this.#askLater(await this.#ask()), pauseMs).unref();
  }

  /** Asks the responder. Returns the pause before the next time. */
  async #ask(): Promise<number> {
    const response = await this.#responderAnswer();
    const pauseMs = response && this.#take(response);
    if (response !== null && pauseMs !== null) {
      await this.#keep(response);
      return pauseMs;
    }
    this.#failures += 1;
    return backoffMs(this.#failures, FAILURE_BACKOFF);
  }

  async #responderAnswer(): Promise<Buffer | null> {
    const found = this.#responder();
    if ('problem' in found) return this.#refuse(found.problem, found.remedy);
    try {
      return await askResponder(found, this.#stop.signal);
    } catch (error) {
      return this.#refuse((error as Error).message);
    }
  }

  /** Takes a response that says something of the certificate. Returns the pause before the next one; null where it is refused. */
  #take(response: Buffer): number | null {
    const found = this.#responder();
    if ('problem' in found) return this.#refuse(found.problem, found.remedy);
    const state = judgeResponse(response, found.certificate, new Date());
    if (state.status === 'none') return this.#refuse(`the response cannot be used: ${state.problem}`);
    if (state.status === 'unknown') return this.#refuse('the responder does not know the certificate');
    if (state.thisUpdate < this.#thisUpdate) return this.#refuse('the response is older than the one before');
    this.#thisUpdate = state.thisUpdate;
    this.#failures = 0;
    if (state.status === 'revoked') {
      const revokedAt = state.revokedAt.toISOString();
      const fields = { subject: this.#subject, revoked_at: revokedAt };
      this.#options.log.error(fields, 'the signing certificate was revoked: nothing is signed with it');
      this.#set({ status: 'revoked', revokedAt });
      return REVOKED_INTERVAL_MS;
    }
    const endsAt = state.nextUpdate;
    this.#set({ status: 'good', response: response.toString('base64'), endsAt: endsAt.toISOString() });
    const halfMs = (endsAt.getTime() - Date.now()) / 2;
    return backoffMs(1, { firstMs: Math.max(halfMs, MIN_PAUSE_MS), maxMs: MAX_PAUSE_MS });
  }

  /** Logs a problem. What is held stays: it is used until it ends. */
  #refuse(problem: string, remedy?: string): null {
    if (this.#stop.signal.aborted) return null;
    this.#options.log.warn({ subject: this.#subject, problem, remedy }, 'there is no new OCSP response to staple');
    if (this.#status.status === 'none') this.#set({ status: 'none', problem });
    return null;
  }

  #set(status: HeldStatus): void {
    this.#status = status;
    this.#options.changed();
  }

  async #keep(response: Buffer): Promise<void> {
    const { file, log } = this.#options;
    try {
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await writeFile(`${file}.new`, response, { mode: 0o600 });
      await rename(`${file}.new`, file);
    } catch (error) {
      log.warn({ file, problem: (error as Error).message }, 'an OCSP response cannot be kept for the next start');
    }
  }

  #responder(): Answerable | Unanswerable {
    return responderOf(this.#options.chain, this.#options.trust);
  }
}

/** Limits the time of one response, in milliseconds. */
const TIMEOUT_MS = 10_000;

/** Asks the responder that a certificate names for a response, which nobody has judged. Throws an Error that says why there is none. */
async function askResponder({ certificate, url }: Answerable, signal: AbortSignal): Promise<Buffer> {
  try {
    const { bytes } = await postBounded({
      url,
      body: ocspRequestFor(certificate),
      contentType: 'application/ocsp-request',
      accept: 'application/ocsp-response',
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
    return bytes;
  } catch (cause) {
    signal.throwIfAborted();
    throw new Error(`the responder ${new URL(url).host} ${authorityProblem(cause)}`, { cause });
  }
}
