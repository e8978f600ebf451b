import { claimCallbacks, delayCallback, endCallback } from './callbacks.ts';
import { cancelJob, cancelledAmong } from './cancel-job.ts';
import { claimDestination, releaseDestinations } from './claim-destination.ts';
import { claimInputs, requestOfJob, startReservedInput } from './claim-inputs.ts';
import { finishInput, recordProcessEnd, recordTransientFailure, requeueInput } from './end-input.ts';
import { endedInputs, entriesOf } from './ended-inputs.ts';
import { endedAmong, findJob } from './find-job.ts';
import { listJobs } from './list-jobs.ts';
import { countQueued, noteProgress } from './note-progress.ts';
import { probeWrite } from './probe-write.ts';
import { pruneSomeJobs } from './prune-jobs.ts';
import { queueState } from './queue-state.ts';
import { recallJob } from './recall-job.ts';
import { recover } from './recover.ts';
import { reportOfJob } from './report-of-job.ts';
import { submitJob, submitJobs } from './submit-job.ts';
import { currentAmong, forgiveServiceEnd, takeDelivered } from './take-delivered.ts';
import { jobsOfSameCallers, placesOfJob, waitingJobs } from './unfinished-jobs.ts';

/**
 * Everything that is done to the store, a function each: `(db, …given) => answer`. An action runs where the database
 * is, so what it is given and what it answers is plain data; an AppError that it throws arrives as one. Adding one is a
 * function, a line here, and a line in `JobStore`.
 */

/** Actions that read only. */
export const reads = {
  cancelledAmong,
  countQueued,
  currentAmong,
  endedAmong,
  endedInputs,
  entriesOf,
  findJob,
  jobsOfSameCallers,
  listJobs,
  placesOfJob,
  queueState,
  recallJob,
  reportOfJob,
  requestOfJob,
  waitingJobs,
};

/** Actions that write, each in a transaction. One may be run twice: only its last run is committed. */
export const writes = {
  cancelJob,
  claimCallbacks,
  claimDestination,
  claimInputs,
  delayCallback,
  endCallback,
  finishInput,
  forgiveServiceEnd,
  noteProgress,
  probeWrite,
  pruneSomeJobs,
  recordProcessEnd,
  recordTransientFailure,
  recover,
  releaseDestinations,
  requeueInput,
  startReservedInput,
  submitJob,
  submitJobs,
  takeDelivered,
};

export type Actions = typeof reads & typeof writes;
export type ActionName = keyof Actions;

type Rest<Given extends readonly unknown[]> = Given extends readonly [unknown, ...infer Others] ? Others : never;

/** What an action is given beside the database. */
export type GivenTo<Name extends ActionName> = Rest<Parameters<Actions[Name]>>;

export type AnswerOf<Name extends ActionName> = Awaited<ReturnType<Actions[Name]>>;

/** Runs actions on a database, wherever that is. A promise settles when what the action did is on the disk. */
export interface ActionRunner {
  /** An action that is in no hurry may wait a little for others to share its commit. */
  run<Name extends ActionName>(name: Name, given: GivenTo<Name>, hurry: boolean): Promise<AnswerOf<Name>>;
  /** Lets what was begun end, then lets go of the database. */
  close(): Promise<void>;
}
