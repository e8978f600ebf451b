import { sql } from 'kysely';
import type { JobStatus } from '#contract/job.ts';
import type { ByteProgress } from '#operations/operation.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import type { InputAttempt, InputId } from '../job.ts';
import { cancelledEntry } from '../result-entries.ts';
import { givenRows, jsonObject } from './dialect.ts';
import { finishWithout, isCancelled, isCurrent, recordServiceExit, requeueInput } from './finish-input.ts';
import type { HandedIn, JobRequest, LeasedInput, LeaseFilter, LeasePart, RecoveredLeases } from './job-store.ts';
import { isLeftOut, needsIn } from './needs.ts';
import { compareInputs } from './priority.ts';
import type { Database, InputStatus } from './tables.ts';
import { type JobChange, startOf, updateJobs } from './update-jobs.ts';

/** Implements `JobStore.leaseInputs`. */
export async function leaseInputs(
  db: Database,
  parts: readonly LeasePart[],
  filter: LeaseFilter,
): Promise<readonly (readonly LeasedInput[])[]> {
  const all: LeasedInput[][] = [];
  let isExhausted = false;
  for (const { count, maxPriorities } of parts) {
    const leased: LeasedInput[] = [];
    for (const maxPriority of maxPriorities) {
      if (isExhausted || leased.length >= count) break;
      const next = await nextQueued(db, count - leased.length, maxPriority, filter);
      leased.push(...(await leaseQueued(db, next, 'reserved')).leased);
    }
    // The last bound is none.
    isExhausted ||= leased.length < count;
    all.push(leased.sort(compareInputs));
  }
  return all;
}

/** Returns the inputs that are leased next. */
async function nextQueued(
  db: Database,
  count: number,
  maxPriority: number,
  filter: LeaseFilter,
): Promise<readonly InputId[]> {
  const { onlyJobs, withoutJobs, withoutCallers, withoutDependencies, onlySigners } = filter;
  return (
    db
      .selectFrom('inputs')
      .select(['inputs.job_id as jobId', 'input_index as inputIndex'])
      // A literal, so that the planner can use the partial index.
      .where(sql<boolean>`inputs.status = 'queued'`)
      .where('priority', '<=', maxPriority)
      .$if(onlyJobs !== null, (inputs) => inputs.where('inputs.job_id', 'in', onlyJobs ?? []))
      .$if(withoutJobs.length > 0, (inputs) => inputs.where('inputs.job_id', 'not in', withoutJobs))
      .$if(withoutDependencies.length > 0 || onlySigners !== null, (inputs) =>
        inputs.where((inputs) => inputs.not(isLeftOut(filter))),
      )
      // From the jobs to their inputs, because most queued inputs may be of these callers.
      .$if(withoutCallers.length > 0, (inputs) =>
        inputs.where('inputs.job_id', 'in', ({ selectFrom }) =>
          selectFrom('jobs')
            .select('jobs.job_id')
            .where('jobs.status', 'in', ['queued', 'running'])
            .where(({ eb, or }) => or([eb('caller', 'is', null), eb('caller', 'not in', withoutCallers)])),
        ),
      )
      .orderBy('priority', 'desc')
      .orderBy('inputs.job_id')
      .orderBy('input_index')
      .limit(count)
      .execute()
  );
}

/** Implements `JobStore.startInputs`. */
export async function startInputs(db: Database, leases: readonly InputAttempt[]): Promise<void> {
  for (const lease of leases)
    await db.updateTable('inputs').set({ status: 'running' }).where(isCurrent(lease)).execute();
  const queued = await db
    .selectFrom('jobs')
    .select('job_id')
    .where('status', '=', 'queued')
    .where('job_id', 'in', [...new Set(leases.map(({ jobId }) => jobId))])
    .execute();
  await updateJobs(
    db,
    queued.map((job) => startOf(job.job_id)),
  );
}

/** Implements `JobStore.recordProgress`. */
export async function recordProgress(db: Database, running: readonly (InputAttempt & ByteProgress)[]): Promise<void> {
  for (const { bytesDone, bytesTotal, ...lease } of running) {
    await db
      .updateTable('inputs')
      .set({ bytes_done: bytesDone, bytes_total: bytesTotal })
      .where(isCurrent(lease))
      .where(({ eb, or }) => or([eb('bytes_done', '!=', bytesDone), eb('bytes_total', '!=', bytesTotal)]))
      .execute();
  }
}

/** Implements `JobStore.requestOfJob`. */
export async function requestOfJob(db: Database, jobId: string): Promise<JobRequest | null> {
  const request = await db
    .selectFrom('job_requests')
    .innerJoin('jobs', 'jobs.job_id', 'job_requests.job_id')
    .select(['operation', 'output as outputJson', 'params as paramsJson', 'trace_parent as traceParent', 'identity'])
    .where('jobs.job_id', '=', jobId)
    .executeTakeFirst();
  return request ?? null;
}

/** Implements `JobStore.recoverLeases`. */
export async function recoverLeases(db: Database): Promise<RecoveredLeases> {
  const leases = await leasedInputs(db).execute();
  for (const lost of leases) await recoverLease(db, lost, 'when the whole service ended');
  const { rows } = await sql<{ count: number }>`
    select count(distinct job_id) as count from inputs where status = 'queued'`.execute(db);
  return { inputs: leases.length, waitingJobs: Number(rows[0]?.count ?? 0) };
}

/**
 * Leases an input whose job message this node received, and which was not queued; null when nothing is left to do. One that is
 * still running was lost by another node: that exit is counted, and after `MAX_SERVICE_EXITS` exits the input fails.
 */
export async function takeOverInput(
  db: Database,
  input: InputId,
): Promise<{ readonly lease: LeasedInput | null; readonly finishedJob: JobReport | null }> {
  const lost = await leasedInputs(db)
    .where('job_id', '=', input.jobId)
    .where('input_index', '=', input.inputIndex)
    .executeTakeFirst();
  const recovered = lost && (await recoverLease(db, lost, 'with its whole node'));
  if (recovered?.input === 'finished') return { lease: null, finishedJob: recovered.finishedJob };
  // Also when nothing was lost: its node may have queued it again meanwhile, and this is its only job message.
  const { leased, starts } = await leaseQueued(db, [input], 'running');
  await updateJobs(db, starts);
  const [lease = null] = leased;
  return { lease, finishedJob: lease === null ? await finishCancelled(db, input) : null };
}

/** The columns of `JobRequest`. */
const REQUEST_FIELDS = {
  operation: 'operation',
  outputJson: 'output',
  paramsJson: 'params',
  traceParent: 'trace_parent',
  identity: 'identity',
} as const satisfies Record<keyof JobRequest, string>;

const INPUT_COLUMNS = { job_id: 'text', input_index: 'integer' } as const;

/**
 * Leases those of the inputs that are queued, and whose jobs are not cancelled. Returns them with the changes of their
 * jobs, which are to be made in the same transaction when the inputs start.
 */
export async function leaseQueued(
  db: Database,
  inputs: readonly InputId[],
  status: 'running' | 'reserved',
): Promise<{ readonly leased: readonly LeasedInput[]; readonly starts: readonly JobChange[] }> {
  if (inputs.length === 0) return { leased: [], starts: [] };
  const rows = inputs.map(({ jobId, inputIndex }) => ({ job_id: jobId, input_index: inputIndex }));
  // The request is read with the lease, because every statement costs a round trip.
  // It is null unless the job has a single input and retries no other.
  const { rows: leases } = await sql<
    Omit<LeasedInput, 'request' | 'needs' | 'waiting'> & {
      readonly jobStatus: JobStatus;
      readonly request: string | null;
      readonly needs: string;
      readonly waitingFor: string | null;
      readonly waitingSince: string | null;
    }
  >`
    update inputs set status = ${status}, attempt = inputs.attempt + 1, bytes_done = 0, bytes_total = 0
    from ${givenRows(db, INPUT_COLUMNS, rows)} as wanted
    where inputs.job_id = wanted.job_id and inputs.input_index = wanted.input_index and inputs.status = 'queued'
      and exists (select 1 from jobs where jobs.job_id = inputs.job_id and jobs.cancelled_at is null)
    returning inputs.job_id as "jobId", inputs.input_index as "inputIndex", inputs.attempt, inputs.priority,
      inputs.transient_failures as "transientFailures", inputs.process_ends as "processExits",
      inputs.input as "inputJson", inputs.needs,
      inputs.waiting_for as "waitingFor", inputs.waiting_since as "waitingSince",
      (select jobs.caller from jobs where jobs.job_id = inputs.job_id) as caller,
      (select jobs.status from jobs where jobs.job_id = inputs.job_id) as "jobStatus",
      (select ${jsonObject(db, REQUEST_FIELDS)} from jobs join job_requests on job_requests.job_id = jobs.job_id
        where jobs.job_id = inputs.job_id and inputs_total = 1 and retried_from is null) as request`.execute(db);
  return {
    leased: leases.map(({ jobStatus: _, request, needs, waitingFor, waitingSince, ...lease }) => ({
      ...lease,
      needs: needsIn(needs),
      waiting: waitingFor === null || waitingSince === null ? null : { dependency: waitingFor, since: waitingSince },
      request: request === null ? null : (JSON.parse(request) as JobRequest),
    })),
    starts: leases.flatMap(({ jobId, jobStatus }) => (jobStatus === 'queued' ? [startOf(jobId)] : [])),
  };
}

/** Selects the leases of inputs. */
function leasedInputs(db: Database) {
  return (
    db
      .selectFrom('inputs')
      .select(['job_id as jobId', 'input_index as inputIndex', 'attempt', 'status'])
      // Literals, so that the planner can use the partial index of leased inputs.
      .where(sql<boolean>`status in ('reserved', 'running')`)
  );
}

/** Takes a lease from a process that was lost: one that ran the input is counted, and `exitCause` says how it exited. */
function recoverLease(
  db: Database,
  { status, ...lease }: InputAttempt & { readonly status: InputStatus },
  exitCause: string,
): Promise<HandedIn> {
  return status === 'running' ? recordServiceExit(db, lease, exitCause) : requeueInput(db, lease);
}

/** Finishes an input that was queued again while its job was cancelled; returns its job when that finished it. */
async function finishCancelled(db: Database, { jobId, inputIndex }: InputId): Promise<JobReport | null> {
  if (!(await isCancelled(db, jobId))) return null;
  // Only a leased input can finish.
  const lease = await db
    .updateTable('inputs')
    .set({ status: 'reserved' })
    .where('job_id', '=', jobId)
    .where('input_index', '=', inputIndex)
    .where('status', '=', 'queued')
    .returning('attempt')
    .executeTakeFirst();
  if (lease === undefined) return null;
  return (await finishWithout(db, { jobId, inputIndex, ...lease }, cancelledEntry(inputIndex))).finishedJob;
}
