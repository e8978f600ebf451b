import { setTimeout as sleep } from 'node:timers/promises';
import { Kysely, PostgresDialect } from 'kysely';
import { type ActionName, type ActionRunner, type AnswerOf, type GivenTo, reads, writes } from '../actions.ts';
import type { RecalledJob } from '../recall-job.ts';
import type { NewJob } from '../submit-job.ts';
import type { Database, Tables } from '../tables.ts';
import { databaseError, isConnectionCut, isInTheWay } from './database-error.ts';
import { Gatherer } from './gatherer.ts';
import type { SafePool } from './postgres-pool.ts';

type Action = (db: Database, ...given: readonly unknown[]) => Promise<unknown>;

/** A transaction that another one was in the way of is tried so often, after a pause that grows. */
const MAX_TRIES = 8;
const RETRY_PAUSE_MS = 10;

/** A look whose connection is cut is taken so often: a pool may hold several that were cut together. */
const MAX_LOOKS = 5;
const LOOK_PAUSE_MS = 20;

/** Submissions that share a transaction: their number, the characters of their requests together, and how many groups at once. */
const SUBMISSIONS = { maxTogether: 64, maxWeight: 2 * 1024 * 1024, maxAtOnce: 2 };

/** What is to happen in the same transaction as an action, once it has its answer. */
export type Accompaniment = {
  readonly [Name in ActionName]?: (db: Database, given: GivenTo<Name>, answer: AnswerOf<Name>) => Promise<void>;
};

/** What is to happen once the transaction of an action is committed. */
export type Aftermath = {
  readonly [Name in ActionName]?: (given: GivenTo<Name>, answer: AnswerOf<Name>) => void;
};

/** Runs the actions on PostgreSQL, from this process. Failures of the database are AppErrors that say what is wrong. */
export class PostgresRunner implements ActionRunner {
  readonly #db: Database;
  readonly #place: string;
  readonly #toDoAfter = new WeakMap<Database, (() => void)[]>();
  readonly #submissions = new Gatherer<NewJob, RecalledJob | null>(
    (jobs) => this.transaction((db) => this.within(db, 'submitJobs', [jobs])),
    SUBMISSIONS,
  );
  #accompaniment: Accompaniment = {};
  #aftermath: Aftermath = {};

  constructor(pool: SafePool, place: string) {
    this.#db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool: pool.forKysely() }) });
    this.#place = place;
  }

  /** Has things happen with actions, from now on. */
  accompany(accompaniment: Accompaniment, aftermath: Aftermath): void {
    this.#accompaniment = accompaniment;
    this.#aftermath = aftermath;
  }

  run<Name extends ActionName>(name: Name, given: GivenTo<Name>): Promise<AnswerOf<Name>> {
    return this.#run(name, given) as Promise<AnswerOf<Name>>;
  }

  #run<Name extends ActionName>(name: Name, given: GivenTo<Name>): Promise<unknown> {
    if (name in reads) return this.read((db) => actionOf(name)(db, ...given));
    if (name === 'submitJob') return this.#submit(given[0] as NewJob);
    return this.transaction((db) => this.within(db, name, given));
  }

  #submit(job: NewJob): Promise<RecalledJob | null> {
    return this.#submissions.ask(job, JSON.stringify(job.request).length);
  }

  /** Reads outside of any transaction: again where the connection is cut, since a look changes nothing. */
  async read<T>(look: (db: Database) => Promise<T>): Promise<T> {
    for (let looks = 1; ; looks += 1) {
      try {
        return await look(this.#db);
      } catch (error) {
        if (looks >= MAX_LOOKS || !isConnectionCut(error)) throw databaseError(this.#place, error);
        await sleep(LOOK_PAUSE_MS * looks);
      }
    }
  }

  /** Does something in one transaction. It may be run several times: only its last run is committed. */
  transaction<T>(work: (db: Database) => Promise<T>): Promise<T> {
    return this.#untilNotInTheWay(() => this.#transactOnce(work));
  }

  /** Does something by one statement, which is a transaction of its own: as `transaction`, in one round trip. */
  statement<T>(work: (db: Database) => Promise<T>): Promise<T> {
    return this.#untilNotInTheWay(() => work(this.#db));
  }

  async #untilNotInTheWay<T>(transact: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await transact();
      } catch (error) {
        if (tries >= MAX_TRIES || !isInTheWay(error)) throw databaseError(this.#place, error);
        await sleep(RETRY_PAUSE_MS * tries);
      }
    }
  }

  async #transactOnce<T>(work: (db: Database) => Promise<T>): Promise<T> {
    const toDoAfter: (() => void)[] = [];
    const value = await this.#db.transaction().execute((db) => {
      this.#toDoAfter.set(db, toDoAfter);
      return work(db);
    });
    for (const deed of toDoAfter) deed();
    return value;
  }

  close(): Promise<void> {
    return this.#db.destroy();
  }

  /** Runs an action, and what accompanies it, in a transaction that is open already. */
  async within<Name extends ActionName>(db: Database, name: Name, given: GivenTo<Name>): Promise<AnswerOf<Name>> {
    const answer = (await actionOf(name)(db, ...given)) as AnswerOf<Name>;
    await this.#accompaniment[name]?.(db, given, answer);
    this.#toDoAfter.get(db)?.push(() => this.#aftermath[name]?.(given, answer));
    return answer;
  }
}

function actionOf(name: ActionName): Action {
  return ({ ...reads, ...writes } as unknown as Readonly<Record<ActionName, Action>>)[name];
}
