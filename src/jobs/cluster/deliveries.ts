import assert from 'node:assert/strict';
import type { PgBoss } from 'pg-boss';
import type { Log } from '../log.ts';
import {
  type DeliverySource,
  type ExchangedInputs,
  exchangeInputs,
  type FinishedInput,
} from '../store/exchange-inputs.ts';
import type { SafePool } from '../store/postgres/postgres-pool.ts';
import { runPrepared } from '../store/prepared.ts';
import type { Database } from '../store/tables.ts';
import type { DeliveredInput } from '../store/take-delivered.ts';

const QUEUE = 'inputs';
/** A schema of its own, which pg-boss keeps up to date by itself. */
const SCHEMA = 'attestream_deliveries';

/** A delivery of which nothing was heard for so long goes to another node. The least that pg-boss has. */
export const HEARTBEAT_SECONDS = 10;

/** An input whose delivery is older is given to another node: the most that pg-boss has. */
const LONGEST_INPUT_SECONDS = 24 * 60 * 60 - 1;

/** Deliveries wait for as long as it takes. */
const RETENTION_SECONDS = 10 * 366 * 24 * 60 * 60;

/** How often a delivery may lapse. What ends an input is counted by the store; this is only never reached. */
const MAX_LAPSES = 1_000;

/** One in so many fetches looks first among what comes last otherwise, so that everything comes forward. */
const LAST_FIRST_EVERY = 8;

/** Inputs of sync jobs come before all others. */
const SYNC_PRIORITY = 100;

/** What comes last otherwise, in turns: jobs that nobody waits for, and the rests of large batches (input 127 and up). */
const LAST_PRIORITIES = [SYNC_PRIORITY / 2, -7];

const QUEUE_OPTIONS = {
  heartbeatSeconds: HEARTBEAT_SECONDS,
  expireInSeconds: LONGEST_INPUT_SECONDS,
  retentionSeconds: RETENTION_SECONDS,
  retryLimit: MAX_LAPSES,
};

/** Nodes that start together make the queue one after another; the number is only ever ours. */
const START_LOCK = 7_235_512_095n;

/** An input that was handed to this node, until it says that the input is done, or nothing is heard of it. */
export interface Delivery extends DeliveredInput {
  readonly id: string;
  /** Tells this handing over from later ones. */
  readonly retryCount: number;
  readonly sync: boolean;
}

/** A job whose inputs are delivered. */
export interface SentJob {
  readonly jobId: string;
  readonly sync: boolean;
  /** Of its inputs. */
  readonly count: number;
}

interface Payload {
  readonly jobId: string;
  readonly inputIndex: number;
  readonly sync: boolean;
}

/**
 * Hands inputs to nodes, one delivery each, by pg-boss. It keeps who is at it and what waits; what an input is, and what
 * became of it, is in the store's own tables. Everything here happens inside transactions of the store.
 */
export class Deliveries {
  readonly #boss: PgBoss;
  /** Where pg-boss keeps them. */
  readonly #table: string;
  #fetches = 0;

  private constructor(boss: PgBoss, table: string) {
    this.#boss = boss;
    this.#table = table;
  }

  /** Opens the queue, and makes or updates its tables. */
  static async open(pool: SafePool, log: Log): Promise<Deliveries> {
    const { PgBoss } = await import('pg-boss');
    const boss = new PgBoss({
      db: { executeSql: (text, values) => pool.query(text, values) },
      schema: SCHEMA,
      schedule: false,
      superviseIntervalSeconds: 1,
      monitorIntervalSeconds: 1,
      registerInstance: false,
      monitorVacuum: false,
      openTelemetry: { enabled: false },
    });
    boss.on('error', (error) => log.warn({ err: error }, 'the queue of deliveries could not be looked after'));
    try {
      await whileAlone(pool, async () => {
        await boss.start();
        await boss.createQueue(QUEUE, QUEUE_OPTIONS);
      });
    } catch (error) {
      await stop(boss);
      throw error;
    }
    const queue = await boss.getQueue(QUEUE);
    assert(queue !== null, 'the queue was made');
    return new Deliveries(boss, `${SCHEMA}.${queue.table}`);
  }

  /** Delivers the inputs of new jobs. */
  async send(db: Database, jobs: readonly SentJob[]): Promise<void> {
    const all = jobs.flatMap(({ jobId, sync, count }) =>
      Array.from({ length: count }, (_, inputIndex) => jobOf({ jobId, inputIndex, sync })),
    );
    if (all.length > 0) await this.#boss.insert(QUEUE, all, { db: within(db) });
  }

  /**
   * Records ends of inputs, ends their deliveries, and takes up to so many others, none of these jobs: all by one statement.
   * `more`: whether there may be more to take.
   */
  async exchange(
    db: Database,
    finished: readonly FinishedInput[],
    count: number,
    exceptJobs: readonly string[],
  ): Promise<ExchangedInputs & { readonly more: boolean }> {
    if (count === 0) return { ...(await exchangeInputs(db, finished, this.#source(null))), more: false };
    const maxPriority = this.#nextLastPriority();
    let done: ExchangedInputs | undefined;
    const exchanging = {
      executeSql: async (text: string, values: unknown[] = []) => {
        done = await exchangeInputs(db, finished, this.#source({ text, values }));
        return { rows: [] };
      },
    };
    const options = { batchSize: count, ignoreGroups: [...exceptJobs], db: exchanging };
    await this.#boss.fetch(QUEUE, { ...options, ...(maxPriority !== undefined && { maxPriority }) });
    assert(done !== undefined, 'pg-boss takes deliveries by one statement');
    return { ...done, more: maxPriority !== undefined || done.taken.length === count };
  }

  /** Whether the input is this node's still; then it stays so until the transaction ends. */
  async holds(db: Database, delivery: Delivery): Promise<boolean> {
    const held = await this.#boss.touch(QUEUE, attemptOf(delivery), { db: within(db) });
    return (held as { affected: number }).affected > 0;
  }

  /** The input is done. False where the delivery lapsed meanwhile, and is or will be another one. */
  async end(db: Database, delivery: Delivery): Promise<boolean> {
    const ended = await this.#boss.deleteJob(QUEUE, attemptOf(delivery), { db: within(db) });
    return (ended as { affected: number }).affected > 0;
  }

  /** The input is to be delivered again, after a while. */
  async delay(db: Database, delivery: Delivery, pauseMs: number): Promise<void> {
    // Never two deliveries of one input.
    if (!(await this.end(db, delivery))) return;
    const again = { ...jobOf(delivery), ...(pauseMs > 0 && { startAfter: Math.ceil(pauseMs / 1000) }) };
    await this.#boss.insert(QUEUE, [again], { db: within(db) });
  }

  /** Says that this node is at these inputs; resolves with those that it has no more. */
  async renew(deliveries: readonly Delivery[]): Promise<readonly Delivery[]> {
    if (deliveries.length === 0 || (await this.#touched(deliveries)) === deliveries.length) return [];
    const lost: Delivery[] = [];
    for (const delivery of deliveries) if ((await this.#touched([delivery])) === 0) lost.push(delivery);
    return lost;
  }

  /** To be called while the database's connections are open. */
  async close(): Promise<void> {
    await stop(this.#boss);
  }

  #source(taking: DeliverySource['taking']): DeliverySource {
    return { table: this.#table, queue: QUEUE, taking };
  }

  #nextLastPriority(): number | undefined {
    this.#fetches += 1;
    const turn = this.#fetches / LAST_FIRST_EVERY;
    return Number.isInteger(turn) ? LAST_PRIORITIES[turn % LAST_PRIORITIES.length] : undefined;
  }

  async #touched(deliveries: readonly Delivery[]): Promise<number> {
    const { affected } = (await this.#boss.touch(QUEUE, deliveries.map(attemptOf))) as { affected: number };
    return affected;
  }
}

/** Neither waits for work nor closes the store's connections. */
async function stop(boss: PgBoss): Promise<void> {
  await boss.stop({ graceful: false, close: false });
}

async function whileAlone(pool: SafePool, work: () => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('select pg_advisory_lock($1)', [START_LOCK]);
    await work();
  } finally {
    // A connection that was lost has let go of it already.
    await client.query('select pg_advisory_unlock($1)', [START_LOCK]).catch(() => undefined);
    client.release();
  }
}

function jobOf({ jobId, inputIndex, sync }: Payload) {
  return { data: { jobId, inputIndex, sync }, priority: priorityOf(inputIndex, sync), group: { id: jobId } };
}

/**
 * The first inputs of a job come before later ones of others: so a small batch goes before the rest of a large one that
 * was there first.
 */
function priorityOf(inputIndex: number, sync: boolean): number {
  return (sync ? SYNC_PRIORITY : 0) - Math.floor(Math.log2(inputIndex + 1));
}

function attemptOf({ id, retryCount }: Delivery): { id: string; retryCount: number } {
  return { id, retryCount };
}

/** The store's transaction, as pg-boss asks for it. */
function within(db: Database) {
  return {
    executeSql: async (text: string, values: unknown[] = []) => ({ rows: [...(await runPrepared(db, text, values))] }),
  };
}
