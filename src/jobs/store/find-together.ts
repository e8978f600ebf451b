import type { JobScope } from '../caller.ts';
import { ENTRIES_JSON } from './ended-inputs.ts';
import { runPrepared } from './prepared.ts';
import type { Database, JobRow } from './tables.ts';

/** What a job shows of itself. */
export type FoundJob = Pick<
  JobRow,
  | 'job_id'
  | 'status'
  | 'caller'
  | 'queued_at'
  | 'started_at'
  | 'finished_at'
  | 'inputs_total'
  | 'inputs_done'
  | 'bytes_done'
  | 'bytes_total'
>;

/** A job with JSON of its result entries, once it has ended. */
export interface Found {
  readonly job: FoundJob;
  readonly resultsJson: string | null;
}

interface FoundRow extends FoundJob {
  /** Of its inputs that run, wherever that is. */
  readonly running_bytes_done: number | null;
  readonly running_bytes_total: number | null;
  readonly results_json: string | null;
}

/** Reads a job with all that is told of it, by one statement of PostgreSQL's own: every other costs a round trip. */
export async function findTogether(db: Database, jobId: string, { caller }: JobScope): Promise<Found | null> {
  const [row] = await runPrepared<FoundRow>(db, FIND, [jobId, caller ?? null]);
  if (row === undefined) return null;
  const { running_bytes_done, running_bytes_total, results_json: resultsJson, ...job } = row;
  return {
    job: {
      ...job,
      bytes_done: job.bytes_done + (running_bytes_done ?? 0),
      bytes_total: job.bytes_total + (running_bytes_total ?? 0),
    },
    resultsJson,
  };
}

const FIND = `
select job_id, status, caller, queued_at, started_at, finished_at, inputs_total, inputs_done, bytes_done, bytes_total,
  running.running_bytes_done, running.running_bytes_total,
  case when finished_at is not null then (
    select ${ENTRIES_JSON} from inputs where inputs.job_id = jobs.job_id
  ) end as results_json
from jobs left join lateral (
  select sum(inputs.bytes_done) as running_bytes_done, sum(inputs.bytes_total) as running_bytes_total
  from inputs where jobs.status = 'running' and inputs.job_id = jobs.job_id and inputs.status = 'running'
) as running on true
where job_id = $1 and ($2::text is null or caller = $2)`;
