import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Log } from '../log.ts';
import { clientConfig } from '../store/postgres/postgres-pool.ts';

export const CHANNEL = 'attestream';
const RECONNECT_FIRST_MS = 250;
const RECONNECT_LAST_MS = 5_000;
/** A connection that only listens would not notice that the other side is gone. */
const PULSE_INTERVAL_MS = 5_000;

/** What nodes tell each other. Each is only a hint: whoever misses one finds out by looking. */
export type Notice =
  | { readonly type: 'queued' }
  | { readonly type: 'ended'; readonly jobId: string }
  | { readonly type: 'cancelled'; readonly jobId: string };

/** Hears what nodes tell each other, over a connection of its own that is made again whenever it is lost. */
export class Notices {
  readonly #url: string;
  readonly #log: Log;
  readonly #hear: (notice: Notice) => void;
  readonly #missed: () => void;
  readonly #stop = new AbortController();
  #listening: Promise<void> | null = null;

  /** `missed` is called when notices may have been missed: at first, and after a connection was lost. */
  constructor(url: string, log: Log, hear: (notice: Notice) => void, missed: () => void) {
    this.#url = url;
    this.#log = log;
    this.#hear = hear;
    this.#missed = missed;
  }

  start(): void {
    this.#listening ??= this.#listen();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#listening;
  }

  async #listen(): Promise<void> {
    const { signal } = this.#stop;
    for (let pauseMs = RECONNECT_FIRST_MS; !signal.aborted; pauseMs = Math.min(pauseMs * 2, RECONNECT_LAST_MS)) {
      try {
        await this.#listenOnce(() => {
          pauseMs = RECONNECT_FIRST_MS;
        });
      } catch (error) {
        this.#log.warn({ err: error }, 'the connection that tells what other nodes do is lost');
      }
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Resolves when it is told to stop; rejects when the connection is lost. */
  async #listenOnce(connected: () => void): Promise<void> {
    const { default: pg } = await import('pg');
    const client = new pg.Client(clientConfig(this.#url));
    const lost = Promise.withResolvers<never>();
    lost.promise.catch(() => undefined);
    client.on('error', lost.reject);
    client.on('end', () => lost.reject(new Error('the server closed the connection')));
    client.on('notification', ({ payload = '' }) => this.#hear(JSON.parse(payload)));
    try {
      await client.connect();
      await client.query(`listen ${CHANNEL}`);
      connected();
      this.#missed();
      await Promise.race([lost.promise, this.#pulse(client)]);
    } finally {
      await Promise.race([client.end().catch(() => undefined), sleep(1_000)]);
    }
  }

  async #pulse(client: Client): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await sleep(PULSE_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      if (!signal.aborted) await client.query('select 1');
    }
  }
}
