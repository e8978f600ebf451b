import { AppError } from '#errors/app-error.ts';
import { type Warning, warning } from '#errors/warning.ts';
import { MAX_TIME_STAMP_BYTES, withTimeStampRelay } from './time-stamp-relay.ts';

/** The RFC 3161 time-stamp authorities that signatures get their time from. */
export interface TimeStampSettings {
  /** Tried in order, at least one. May hold credentials: never shown whole. */
  readonly urls: readonly string[];
  /** Limits the time of each authority for one time-stamp. */
  readonly timeoutMs: number;
  /** False where a manifest without a time-stamp is better than none. */
  readonly isRequired: boolean;
}

/** The part of a signature that is kept for a time-stamp. */
export interface TimeStampSpace {
  readonly sizeBytes: number;
  /** The reasons why the signature gets no time-stamp; empty where it gets one, or needs none. */
  readonly problems: readonly string[];
}

/** The space of a signature without a time-stamp. */
export const NO_TIME_STAMP: TimeStampSpace = { sizeBytes: 0, problems: [] };

/** A signed manifest store (JUMBF), with warnings about its signature. */
export interface SignedManifest {
  readonly manifest: Buffer;
  readonly warnings: readonly Warning[];
}

/** Signs a manifest, for which the SDK gets a time-stamp from the address. */
type StampedSigning = (tsaUrl: string) => Promise<Buffer>;

/** The size of the structure around a time-stamp in the COSE header `sigTst2` (C2PA 2.2 §10.3.2.5). */
const OVERHEAD_BYTES = 32;
/**
 * Covers what differs between the answers of one authority: the length of the serial number, of fractions of a second, of an
 * ECDSA signature, and of the certificates of another of its machines.
 */
const MARGIN_BYTES = 256;

/** Gets time-stamps from the first authority that gives one. Knows the size of the last answer of each, in this process. */
export class TimeStamps {
  readonly #settings: TimeStampSettings;
  readonly #answerBytes = new Map<string, number>();

  constructor(settings: TimeStampSettings) {
    this.#settings = settings;
  }

  /**
   * Returns the space for a time-stamp. If no authority has answered yet, `probe` signs something to learn the size.
   * Throws `TIME_STAMP_UNAVAILABLE` where none answers and a time-stamp is required.
   */
  async reserve(probe: StampedSigning, signal: AbortSignal): Promise<TimeStampSpace> {
    if (this.#answerBytes.size === 0) {
      const { problems } = await this.#firstOf(probe, MAX_TIME_STAMP_BYTES, signal);
      if (this.#answerBytes.size === 0) return { sizeBytes: 0, problems: this.#requireNone(problems) };
    }
    return { sizeBytes: Math.max(...this.#answerBytes.values()) + MARGIN_BYTES + OVERHEAD_BYTES, problems: [] };
  }

  /**
   * Signs with a time-stamp in the space that was reserved; with a warning without one, where it is not required. Throws
   * `TIME_STAMP_UNAVAILABLE`, or `TIME_STAMP_LARGER` where the space is too small: the next one that is reserved is not.
   */
  async sign(
    signing: (tsaUrl: string | null) => Promise<Buffer>,
    space: TimeStampSpace,
    signal: AbortSignal,
  ): Promise<SignedManifest> {
    let { problems } = space;
    if (problems.length === 0) {
      const stamped = await this.#firstOf(signing, space.sizeBytes - OVERHEAD_BYTES, signal);
      if (stamped.manifest !== null) return { manifest: stamped.manifest, warnings: [] };
      problems = this.#requireNone(stamped.problems);
    }
    return { manifest: await signing(null), warnings: [warning('TIME_STAMP_MISSING', { problems })] };
  }

  async #firstOf(
    signing: StampedSigning,
    maxBytes: number,
    signal: AbortSignal,
  ): Promise<{ readonly manifest: Buffer | null; readonly problems: readonly string[] }> {
    const problems: string[] = [];
    for (const url of this.#settings.urls) {
      const manifest = await this.#askOne(url, signing, maxBytes, signal);
      if (typeof manifest !== 'string') return { manifest, problems };
      problems.push(`${new URL(url).host} ${manifest}`);
    }
    return { manifest: null, problems };
  }

  /** Signs with a time-stamp of one authority. Returns the problem where it gives none. Throws `TIME_STAMP_LARGER`. */
  async #askOne(url: string, signing: StampedSigning, maxBytes: number, signal: AbortSignal): Promise<Buffer | string> {
    const authority = { url, timeoutMs: this.#settings.timeoutMs };
    return withTimeStampRelay(authority, maxBytes, signal, async (relay) => {
      try {
        const manifest = await signing(relay.url);
        this.#answerBytes.set(url, relay.outcome().answerBytes);
        return manifest;
      } catch (cause) {
        signal.throwIfAborted();
        const { problem, answerBytes } = relay.outcome();
        // The SDK failed for a reason of its own.
        if (problem === null) throw cause;
        if (answerBytes <= maxBytes) {
          this.#answerBytes.delete(url);
          return problem;
        }
        this.#answerBytes.set(url, answerBytes);
        throw new AppError('TIME_STAMP_LARGER', { host: new URL(url).host, answerBytes, maxBytes }, { cause });
      }
    });
  }

  #requireNone(problems: readonly string[]): readonly string[] {
    if (this.#settings.isRequired) throw new AppError('TIME_STAMP_UNAVAILABLE', { problems });
    return problems;
  }
}
