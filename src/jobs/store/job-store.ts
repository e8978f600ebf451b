import { Kysely } from 'kysely';
import { AppError } from '#errors/app-error.ts';
import type { ByteProgress, Claim, JobSnapshot, ResultEntry } from '../job.ts';
import { type ClaimedInput, reserveNextInput, startNextInput, startReservedInput } from './claim-input.ts';
import { finishInput, type InputEnd, recordProcessEnd, requeueInput } from './end-input.ts';
import { endedAmong, findJob } from './find-job.ts';
import { GroupCommit } from './group-commit.ts';
import { migrate } from './migrate.ts';
import { migrations } from './migrations.ts';
import { pruneSomeJobs } from './prune-jobs.ts';
import { type RecoveredInput, recover } from './recover.ts';
import type { StoreEngine } from './store-engine.ts';
import { type NewJob, submitJob } from './submit-job.ts';
import type { Database, Tables } from './tables.ts';
import { type JobPlaces, placesOfJob, type WaitingJob, waitingJobs } from './unfinished-jobs.ts';

/**
 * What is known of jobs and inputs, durably. A promise settles when what it did is on the disk, and rejects with an
 * AppError where the store cannot be reached; then nothing of it was done.
 *
 * Glossary. A *claim* gives a queued input to one process, which starts it at once or has it *reserved* first; the
 * attempt tells claims of the same input apart. Whoever holds a claim ends it in one of three ways: *finish* (there is
 * a result), *requeue* (stopped for no fault of the input) or *record process end* (the process working on it ended).
 * All three are refused as *late* where the claim is not the last one.
 */
export class JobStore {
  readonly #db: Database;
  readonly #engine: StoreEngine;
  readonly #writes: GroupCommit;

  private constructor(engine: StoreEngine) {
    this.#engine = engine;
    this.#db = new Kysely<Tables>({ dialect: engine.dialect });
    this.#writes = new GroupCommit(this.#db);
  }

  /** Opens the store and brings its tables up to date. */
  static async open(engine: StoreEngine): Promise<JobStore> {
    const store = new JobStore(engine);
    try {
      const version = await migrate(store.#db);
      const known = migrations.length;
      if (version > known) throw new AppError('STORE_NEWER', { file: engine.place, version, known });
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  submitJob(job: NewJob): Promise<void> {
    return this.#writes.run((db) => submitJob(db, this.#engine, job));
  }

  startNextInput(jobId: string): Promise<ClaimedInput | null> {
    return this.#writes.run((db) => startNextInput(db, jobId, new Date()));
  }

  reserveNextInput(jobId: string): Promise<ClaimedInput | null> {
    return this.#writes.run((db) => reserveNextInput(db, jobId));
  }

  startReservedInput(claim: Claim): Promise<void> {
    return this.#writes.run((db) => startReservedInput(db, claim, new Date()));
  }

  finishInput(claim: Claim, result: ResultEntry, progress: ByteProgress): Promise<InputEnd> {
    return this.#writes.run((db) => finishInput(db, claim, result, progress, new Date()));
  }

  requeueInput(claim: Claim): Promise<InputEnd> {
    return this.#writes.run((db) => requeueInput(db, claim));
  }

  recordProcessEnd(claim: Claim, how: string): Promise<InputEnd> {
    return this.#writes.run((db) => recordProcessEnd(db, claim, how, new Date()));
  }

  recover(): Promise<readonly RecoveredInput[]> {
    return this.#writes.run((db) => recover(db, new Date()));
  }

  waitingJobs(): Promise<readonly WaitingJob[]> {
    return waitingJobs(this.#db);
  }

  findJob(jobId: string): Promise<JobSnapshot | null> {
    return findJob(this.#db, jobId);
  }

  endedAmong(jobIds: readonly string[]): Promise<readonly string[]> {
    return endedAmong(this.#db, jobIds);
  }

  placesOfJob(jobId: string): Promise<JobPlaces> {
    return placesOfJob(this.#db, jobId);
  }

  /** Deletes the jobs that ended before a time, a few at once; resolves with how many. */
  async pruneEnded(endedBefore: Date): Promise<number> {
    let pruned = 0;
    for (;;) {
      const some = await this.#writes.run((db) => pruneSomeJobs(db, endedBefore));
      if (some === 0) return pruned;
      pruned += some;
    }
  }

  /** Rejects where the store cannot be reached. */
  async ping(): Promise<void> {
    await this.#db.selectFrom('schema_versions').select('version').limit(1).execute();
  }

  /** Lets writes that were begun end, then lets go of the database. */
  async close(): Promise<void> {
    await this.#writes.idle();
    await this.#db.destroy();
  }
}
