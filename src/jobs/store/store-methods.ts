import { closeCallback, leaseCallbacks, postponeCallback } from './callbacks.ts';
import { findRequest, findRetriedJob } from './find-request.ts';
import { cancelJob, cancelledAmong, finishInputs, releaseInputs } from './finish-input.ts';
import type { JobStore } from './job-store.ts';
import { leaseInputs, recoverLeases, requestOfJob, startInputs } from './lease-inputs.ts';
import { probeWrite, pruneJobs } from './maintenance.ts';
import { countNeeding, countWaiting, identitiesBeside, recordWaiting, waitingInputs } from './needs.ts';
import { pathsOfJob, releaseOutputPaths, reserveOutputPath } from './output-paths.ts';
import { countQueued, queueState } from './queue-state.ts';
import { findJob, finishedAmong, finishedInputs, listJobs, recentJobs, resultEntries } from './read-jobs.ts';
import { countLeftOut, findFailedJobs } from './retried-inputs.ts';
import { findByIdempotencyKey, submitJob } from './submit-job.ts';
import type { Database } from './tables.ts';

/** The methods of `JobStore` that work on the database. */
export type StoreMethod = Exclude<keyof JobStore, 'batched' | 'close'>;

/** Implements a method on a database: `read` outside of a transaction, `write` within one. */
export interface MethodOnDatabase<Arguments extends readonly unknown[], Result> {
  readonly access: 'read' | 'write';
  readonly run: (db: Database, ...args: Arguments) => Promise<Result>;
}

export function read<Arguments extends readonly unknown[], Result>(
  run: (db: Database, ...args: Arguments) => Promise<Result>,
): MethodOnDatabase<Arguments, Result> {
  return { access: 'read', run };
}

export function write<Arguments extends readonly unknown[], Result>(
  run: (db: Database, ...args: Arguments) => Promise<Result>,
): MethodOnDatabase<Arguments, Result> {
  return { access: 'write', run };
}

/** The implementations of the methods, which SQLite runs on its thread, and PostgreSQL in the process of the service. */
export const storeMethods: {
  readonly [M in StoreMethod]: MethodOnDatabase<Parameters<JobStore[M]>, Awaited<ReturnType<JobStore[M]>>>;
} = {
  cancelJob: write(cancelJob),
  cancelledAmong: read(cancelledAmong),
  closeCallback: write(closeCallback),
  countNeeding: read(countNeeding),
  countLeftOut: read(countLeftOut),
  countQueued: read(countQueued),
  countWaiting: read(countWaiting),
  findByIdempotencyKey: read(findByIdempotencyKey),
  findFailedJobs: read(findFailedJobs),
  findJob: read(findJob),
  findRequest: read(findRequest),
  findRetriedJob: read(findRetriedJob),
  finishedAmong: read(finishedAmong),
  finishedInputs: read(finishedInputs),
  finishInputs: write(finishInputs),
  identitiesBeside: read(identitiesBeside),
  leaseCallbacks: write(leaseCallbacks),
  leaseInputs: write(leaseInputs),
  listJobs: read(listJobs),
  pathsOfJob: read(pathsOfJob),
  postponeCallback: write(postponeCallback),
  probeWrite: write(probeWrite),
  pruneJobs: write(pruneJobs),
  queueState: read(queueState),
  recentJobs: read(recentJobs),
  recordWaiting: write(recordWaiting),
  recoverLeases: write(recoverLeases),
  releaseInputs: write(releaseInputs),
  releaseOutputPaths: write(releaseOutputPaths),
  requestOfJob: read(requestOfJob),
  reserveOutputPath: write(reserveOutputPath),
  resultEntries: read(resultEntries),
  startInputs: write(startInputs),
  submitJob: write(submitJob),
  waitingInputs: read(waitingInputs),
};
