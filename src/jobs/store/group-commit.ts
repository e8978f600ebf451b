import type { Database } from './tables.ts';

/** What is done inside a transaction. It may be run twice: only its last run is committed. */
type Action<T> = (db: Database) => Promise<T>;

interface Pending {
  readonly action: Action<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** At most so many actions share a commit. */
const MAX_GROUP = 64;

/**
 * Lets actions that are asked for at about the same time share one commit, and so one sync of the disk. An action's
 * promise settles only when what it wrote is on the disk. Where one of a group fails, each is run on its own.
 */
export class GroupCommit {
  readonly #db: Database;
  readonly #pending: Pending[] = [];
  #working: Promise<void> | null = null;

  constructor(db: Database) {
    this.#db = db;
  }

  run<T>(action: Action<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#pending.push({ action, resolve: resolve as (value: unknown) => void, reject });
      this.#working ??= this.#work();
    });
  }

  /** Settles when everything that was asked for is done. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async #work(): Promise<void> {
    // What is asked for in the same turn of the event loop goes into the first commit.
    await Promise.resolve();
    while (this.#pending.length > 0) await this.#commit(this.#pending.splice(0, MAX_GROUP));
    this.#working = null;
  }

  async #commit(group: readonly Pending[]): Promise<void> {
    try {
      const values = await this.#db.transaction().execute(async (transaction) => {
        const results: unknown[] = [];
        for (const { action } of group) results.push(await action(transaction));
        return results;
      });
      for (const [index, { resolve }] of group.entries()) resolve(values[index]);
    } catch (error) {
      const [first, ...others] = group;
      if (first !== undefined && others.length === 0) return first.reject(error);
      for (const pending of group) await this.#commit([pending]);
    }
  }
}
