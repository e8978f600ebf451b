import type { Generated, Kysely, Selectable } from 'kysely';
import type { JobStatus } from '#contract/job.ts';
import type { OperationName } from '#operations/operation.ts';

/**
 * The tables of the job store; the same on every engine. Timestamps are ISO 8601 in UTC with milliseconds, so that
 * they sort as text; truth values are 0 and 1.
 */
export interface Tables {
  readonly jobs: JobsTable;
  readonly job_requests: JobRequestsTable;
  readonly inputs: InputsTable;
  readonly callbacks: CallbacksTable;
  readonly destinations: DestinationsTable;
  readonly schema_versions: SchemaVersionsTable;
  readonly write_probe: WriteProbeTable;
}

/** A job: the unit that callers see. Small, because every input that ends updates it. */
interface JobsTable {
  readonly job_id: string;
  readonly sync: number;
  status: JobStatus;
  readonly queued_at: string;
  started_at: string | null;
  finished_at: string | null;
  readonly inputs_total: number;
  inputs_done: number;
  /** Of those done, the ones that did not succeed. */
  inputs_failed: number;
  /** Bytes of the inputs that are done; what runs is known only to whoever runs it. */
  bytes_done: number;
  bytes_total: number;
  /** When somebody asked for it to be cancelled. */
  cancelled_at: string | null;
  /** The name of who submitted it; null where no tokens were set, and of jobs older than callers. */
  readonly caller: string | null;
  /** With the caller's name before it; no two jobs have the same. */
  readonly idempotency_key: string | null;
  /** SHA-256 of what was asked for with the key, in hexadecimal. */
  readonly request_digest: string | null;
  /** What is to be done when it ends, as truth values. */
  readonly has_callback: Generated<number>;
  readonly has_url_secrets: Generated<number>;
}

/** What all inputs of a job share, apart from the job because it may be megabytes. */
interface JobRequestsTable {
  readonly job_id: string;
  readonly operation: OperationName;
  /** JSON of the request's `output`, or of null. */
  readonly output: string;
  /** JSON of the request's `params`, or of null. */
  params: string;
  /** The W3C `traceparent` of the submission; null where it is not traced. */
  readonly trace_parent: string | null;
}

/** An input: the unit that is queued, run, retried and fenced. */
interface InputsTable {
  readonly job_id: string;
  readonly input_index: number;
  status: InputStatus;
  /** Counts the claims; only the last one may write. */
  attempt: Generated<number>;
  /** How often the process that worked on it ended while it did. */
  process_ends: Generated<number>;
  /** How often the whole service, or the node that had it, ended while it ran. */
  service_ends: Generated<number>;
  /** How often it failed for a reason that may pass. */
  transient_failures: Generated<number>;
  /** How far it was when a node that runs it last told; only where several nodes share the store. */
  bytes_done: Generated<number>;
  bytes_total: Generated<number>;
  /** JSON of the request's input. */
  input: string;
  /** JSON of the result entry, once there is one. */
  result: string | null;
  /** What tells the delivered output from those of other attempts: the SHA-256 of its manifest, in hexadecimal. */
  delivered_digest: string | null;
}

/** `reserved`: claimed by a process that will start it soon, so that no worker waits for the disk between two inputs. */
export type InputStatus = 'queued' | 'reserved' | 'running' | 'succeeded' | 'failed' | 'cancelled';

/** Where the result of a job is sent. */
interface CallbacksTable {
  readonly job_id: string;
  /** With all its secrets until the callback is done with; then only its origin. */
  url: string;
  /** `waiting` for the job to end, `due`, or done with. */
  state: 'waiting' | 'due' | 'delivered' | 'given_up';
  attempts: number;
  /** When the job ended. */
  ended_at: string | null;
  /** Only of those that are due. */
  next_attempt_at: string | null;
}

/** Who writes where, of jobs whose inputs several nodes share. */
interface DestinationsTable {
  readonly job_id: string;
  /** With its links resolved. */
  readonly place: string;
  readonly input_index: number;
}

interface SchemaVersionsTable {
  readonly version: number;
  readonly applied_at: string;
}

/** One row, which is written to see whether the database can be. */
interface WriteProbeTable {
  readonly id: number;
  written_at: string;
  padding: string;
}

export type JobRow = Selectable<JobsTable>;

/** The store's database, or a transaction in it. */
export type Database = Kysely<Tables>;
