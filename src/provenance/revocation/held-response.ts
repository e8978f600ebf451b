import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Backoff, backoffMs } from '#concurrency/retry.ts';
import type { Log } from '#telemetry/logger.ts';
import type { HeldStatus } from '../staples.ts';
import type { TrustSource } from '../trust-lists.ts';
import { askResponder } from './ask-responder.ts';
import type { IssuedCertificate } from './certificate-id.ts';
import { judgeResponse } from './judge-response.ts';

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
/** The pause before a revoked certificate is asked about again, or one of which the response names no end. */
const INTERVAL_MS = 60 * 60_000;
/** The shortest and the longest pause: a timer takes no more than 24 days. */
const MIN_PAUSE_MS = 30_000;
const MAX_PAUSE_MS = 7 * 24 * 60 * 60_000;

/** The OCSP response of one certificate. It is asked for again when half of its time is over. */
export class HeldResponse {
  readonly #options: HeldResponseOptions;
  readonly #subject: string;
  readonly #stop = new AbortController();
  #status: HeldStatus = { status: 'none', problem: 'the responder has not answered yet' };
  #failures = 0;

  private constructor(options: HeldResponseOptions) {
    this.#options = options;
    this.#subject = new X509Certificate(options.chain[0] as Buffer).subject;
  }

  /** Reads the response of an earlier run; asks the responder where there is none, and once waits for its answer. */
  static async open(options: HeldResponseOptions): Promise<HeldResponse> {
    const held = new HeldResponse(options);
    const kept = await readFile(options.file).catch(() => null);
    const pauseMs = (kept && held.#take(kept)) ?? (await held.#ask());
    void held.#renew(pauseMs);
    return held;
  }

  get status(): HeldStatus {
    return this.#status;
  }

  close(): void {
    this.#stop.abort();
  }

  async #renew(firstPauseMs: number): Promise<void> {
    const { signal } = this.#stop;
    for (let pauseMs = firstPauseMs; ; pauseMs = await this.#ask()) {
      await sleep(pauseMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (signal.aborted) return;
    }
  }

  /** Asks the responder. Returns the pause before the next time. */
  async #ask(): Promise<number> {
    try {
      const response = await askResponder(this.#certificate(), this.#stop.signal);
      const pauseMs = this.#take(response);
      if (pauseMs !== null) {
        await this.#keep(response);
        return pauseMs;
      }
    } catch (error) {
      this.#refuse((error as Error).message);
    }
    this.#failures += 1;
    return backoffMs(this.#failures, FAILURE_BACKOFF);
  }

  /** Takes a response that says something of the certificate. Returns the pause before the next one; null where it is refused. */
  #take(response: Buffer): number | null {
    const state = judgeResponse(response, this.#certificate(), new Date());
    if (state.status === 'none') return this.#refuse(`the response cannot be used: ${state.problem}`);
    if (state.status === 'unknown') return this.#refuse('the responder does not know the certificate');
    this.#failures = 0;
    if (state.status === 'revoked') {
      const revokedAt = state.revokedAt.toISOString();
      const fields = { subject: this.#subject, revoked_at: revokedAt };
      this.#options.log.error(fields, 'the signing certificate was revoked: nothing is signed with it');
      this.#set({ status: 'revoked', revokedAt });
      return INTERVAL_MS;
    }
    const endsAt = state.nextUpdate;
    this.#set({ status: 'good', response: response.toString('base64'), endsAt: endsAt?.toISOString() ?? null });
    const halfMs = endsAt === null ? INTERVAL_MS : (endsAt.getTime() - Date.now()) / 2;
    return backoffMs(1, { firstMs: Math.max(halfMs, MIN_PAUSE_MS), maxMs: MAX_PAUSE_MS });
  }

  /** Logs a problem. What is held stays: it is used until it ends. */
  #refuse(problem: string): null {
    if (this.#stop.signal.aborted) return null;
    this.#options.log.warn({ subject: this.#subject, problem }, 'there is no new OCSP response to staple');
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

  /** Throws where the issuer is not known. */
  #certificate(): IssuedCertificate {
    const chain = this.#options.chain.map((der) => new X509Certificate(der));
    const issuer = this.#options.trust.current.issuerOf(chain);
    const [leaf] = chain;
    if (leaf !== undefined && issuer !== null) return { leaf, issuer };
    throw new Error("the issuer's certificate is neither in the identity's file nor in trust.anchors");
  }
}
