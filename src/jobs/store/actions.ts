import { claimInputs, requestOfJob, startReservedInput } from './claim-inputs.ts';
import { finishInput, recordProcessEnd, requeueInput } from './end-input.ts';
import { endedAmong, findJob } from './find-job.ts';
import { ping } from './ping.ts';
import { pruneSomeJobs } from './prune-jobs.ts';
import { recover } from './recover.ts';
import { submitJob } from './submit-job.ts';
import { placesOfJob, waitingJobs } from './unfinished-jobs.ts';

/**
 * Everything that is done to the store, a function each: `(db, …given) => answer`. An action runs where the database
 * is, so what it is given and what it answers is plain data; an AppError that it throws arrives as one. Adding one is a
 * function, a line here, and a line in `JobStore`.
 */

/** Actions that read only. */
export const reads = { endedAmong, findJob, ping, placesOfJob, requestOfJob, waitingJobs };

/** Actions that write, each in a transaction. One may be run twice: only its last run is committed. */
export const writes = {
  claimInputs,
  finishInput,
  pruneSomeJobs,
  recordProcessEnd,
  recover,
  requeueInput,
  startReservedInput,
  submitJob,
};

export type Actions = typeof reads & typeof writes;
export type ActionName = keyof Actions;

type Rest<Given extends readonly unknown[]> = Given extends readonly [unknown, ...infer Others] ? Others : never;

/** What an action is given beside the database. */
export type GivenTo<Name extends ActionName> = Rest<Parameters<Actions[Name]>>;

export type AnswerOf<Name extends ActionName> = Awaited<ReturnType<Actions[Name]>>;

/** Runs actions on a database, wherever that is. A promise settles when what the action did is on the disk. */
export interface ActionRunner {
  run<Name extends ActionName>(name: Name, given: GivenTo<Name>): Promise<AnswerOf<Name>>;
  /** Lets what was begun end, then lets go of the database. */
  close(): Promise<void>;
}
