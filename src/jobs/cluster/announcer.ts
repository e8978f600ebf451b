import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Log } from '../log.ts';
import type { PostgresRunner } from '../store/postgres/postgres-runner.ts';
import { CHANNEL, type Notice } from './notices.ts';

/** Notices that share a statement. */
const MAX_TOGETHER = 1_000;
/** Between two statements. */
const PAUSE_MS = 10;

/**
 * Tells every node, this one too, of what was committed. Not in the transactions themselves: those that notify are
 * committed one after another in the whole database, each waiting for the disk. What comes while a statement is under way,
 * and a little longer, shares the next one.
 */
export class Announcer {
  readonly #runner: PostgresRunner;
  readonly #log: Log;
  readonly #waiting = new Set<string>();
  #telling: Promise<void> | null = null;

  constructor(runner: PostgresRunner, log: Log) {
    this.#runner = runner;
    this.#log = log;
  }

  announce(notice: Notice): void {
    this.#waiting.add(JSON.stringify(notice));
    this.#telling ??= this.#tell();
  }

  /** Resolves when everything has been told. To be called while the database's connections are open. */
  async close(): Promise<void> {
    await this.#telling;
  }

  async #tell(): Promise<void> {
    while (this.#waiting.size > 0) {
      const payloads = [...this.#waiting].slice(0, MAX_TOGETHER);
      for (const payload of payloads) this.#waiting.delete(payload);
      try {
        await this.#runner.read((db) => tell(payloads).execute(db));
      } catch (error) {
        // Nothing is lost but time: each node looks for itself now and then.
        this.#log.warn({ err: error }, 'other nodes could not be told at once what happened');
      }
      await sleep(PAUSE_MS);
    }
    this.#telling = null;
  }
}

/** A notice need not outlive the database, so its commit does not wait for the disk. */
function tell(payloads: readonly string[]) {
  return sql`select set_config('synchronous_commit', 'off', true), pg_notify(${CHANNEL}, payload)
    from unnest(${payloads}::text[]) as payload`;
}
