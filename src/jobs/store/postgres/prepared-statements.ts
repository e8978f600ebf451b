/** Bound on prepared statements, each of which takes memory in every connection. */
const MAX_PREPARED = 100;

/** Uses after which a statement is prepared. Texts with a list of values vary with its length, and few of them come back. */
const MIN_USES = 5;

/** Bound on texts whose uses are counted. */
const MAX_COUNTED = 1_000;

/** They take no parameters and have no plan. */
const TRANSACTION_CONTROL = /^(begin|commit|rollback)\b/;

/**
 * Marks statements that are never prepared: which plan is a good one depends on their values. A plan for any caller or
 * label reads all jobs for one that few have.
 */
export const PLANNED_BY_VALUES = '/* planned by its values */';

/**
 * Names the frequent statements of a pool, which PostgreSQL then parses once in each connection, and plans rarely:
 * planning the statements of one input took longer than running them.
 */
export class PreparedStatements {
  readonly #names = new Map<string, string>();
  readonly #uses = new Map<string, number>();
  #generation = 1;

  /** Counts a use, and returns the name under which the statement is prepared; undefined when it is not. */
  use(text: string): string | undefined {
    const name = this.#names.get(text);
    const isNeverPrepared = TRANSACTION_CONTROL.test(text) || text.endsWith(PLANNED_BY_VALUES);
    if (name !== undefined || this.#names.size >= MAX_PREPARED || isNeverPrepared) return name;
    const uses = (this.#uses.get(text) ?? 0) + 1;
    if (uses < MIN_USES) return this.#count(text, uses);
    this.#uses.delete(text);
    const newName = `statement_${this.#generation}_${this.#names.size + 1}`;
    this.#names.set(text, newName);
    return newName;
  }

  /** Has every statement prepared anew, because a migration changed the types of a result. */
  renew(): void {
    this.#names.clear();
    this.#generation += 1;
  }

  #count(text: string, uses: number): undefined {
    if (this.#uses.size >= MAX_COUNTED) this.#uses.clear();
    this.#uses.set(text, uses);
  }
}
