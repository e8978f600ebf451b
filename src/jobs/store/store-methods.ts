import { closeCallback, leaseCallbacks, postponeCallback } from './callbacks.ts';
import { cancelJob, cancelledAmong, finishInput, releaseInput } from './finish-input.ts';
import type { JobStore } from './job-store.ts';
import { leaseInputs, recordProgress, recoverLeases, requestOfJob, startInputs } from './lease-inputs.ts';
import { probeWrite, pruneJobs } from './maintenance.ts';
import { countNeeding, countWaiting, identitiesBeside, recordWaiting, waitingInputs } from './needs.ts';
import { pathsOfJob, releaseOutputPaths, reserveOutputPath } from './output-paths.ts';
import { countQueued, queueState } from './queue-state.ts';
import {
  findJob,
  findRequest,
  findRetriedJob,
  finishedAmong,
  finishedInputs,
  listJobs,
  recentJobs,
  resultEntries,
} from './read-jobs.ts';
import { countLeftOut, findFailedJobs } from './retried-inputs.ts';
import { findByIdempotencyKey, submitJob } from './submit-job.ts';
import type { Database } from './tables.ts';

/** The methods of `JobStore` that work on the database. */
export type StoreMethod = Exclude<keyof JobStore, 'close'>;

type MethodsOnDatabase = {
  readonly [M in StoreMethod]: (db: Database, ...args: Parameters<JobStore[M]>) => ReturnType<JobStore[M]>;
};

/** The implementations that run outside of a transaction. */
const reads = {
  cancelledAmong,
  countNeeding,
  countLeftOut,
  countQueued,
  countWaiting,
  findByIdempotencyKey,
  findFailedJobs,
  findJob,
  findRequest,
  findRetriedJob,
  finishedAmong,
  finishedInputs,
  identitiesBeside,
  listJobs,
  pathsOfJob,
  queueState,
  recentJobs,
  requestOfJob,
  resultEntries,
  waitingInputs,
} satisfies Partial<MethodsOnDatabase>;

/** The implementations that run within a transaction. */
const writes = {
  cancelJob,
  closeCallback,
  finishInput,
  leaseCallbacks,
  leaseInputs,
  postponeCallback,
  probeWrite,
  pruneJobs,
  recordProgress,
  recordWaiting,
  recoverLeases,
  releaseInput,
  releaseOutputPaths,
  reserveOutputPath,
  startInputs,
  submitJob,
} satisfies Partial<MethodsOnDatabase>;

/** The implementations of the methods, which SQLite runs on its thread, and PostgreSQL in the process of the service. */
const methods: MethodsOnDatabase = { ...reads, ...writes };

export const STORE_METHODS = Object.keys(methods) as readonly StoreMethod[];

export function isRead(method: StoreMethod): boolean {
  return method in reads;
}

/** Runs a method on a database. The types of `JobStore` have checked its arguments. */
export function runMethod(db: Database, method: StoreMethod, args: readonly unknown[]): Promise<unknown> {
  return (methods[method] as (db: Database, ...args: readonly unknown[]) => Promise<unknown>)(db, ...args);
}
