import type { Generated, Kysely, Selectable } from 'kysely';
import type { JobStatus } from '#contract/job.ts';
import type { OperationName } from '#operations/operation.ts';

/**
 * The tables of the job store, the same on SQLite and PostgreSQL. Timestamps are ISO 8601 in UTC with milliseconds, so that
 * they sort as text. Booleans are 0 and 1.
 */
export interface Tables {
  readonly jobs: JobsTable;
  readonly job_requests: JobRequestsTable;
  readonly job_labels: JobLabelsTable;
  readonly inputs: InputsTable;
  readonly callbacks: CallbacksTable;
  readonly destinations: DestinationsTable;
  readonly schema_versions: SchemaVersionsTable;
  readonly write_probe: WriteProbeTable;
  readonly nodes: NodesTable;
}

/** Jobs: the unit that callers see. The row is small, because every finished input updates it. */
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
  /** Of those, the ones that were cancelled. */
  inputs_cancelled: Generated<number>;
  /** The reason of the input that failed first. */
  first_reason: string | null;
  /** Bytes of the finished inputs; the progress of running inputs is in their rows. */
  bytes_done: number;
  bytes_total: number;
  /** The time of the cancellation. */
  cancelled_at: string | null;
  /** The name of the submitter; null when no tokens were configured, and for jobs older than callers. */
  readonly caller: string | null;
  /** The name of the identity that its inputs sign with; null where nothing is signed, and for jobs of releases that had one. */
  readonly identity: string | null;
  /** The caller's name of the job. */
  readonly client_reference: string | null;
  /** The job that it retries; it may have been deleted. */
  readonly retried_from: string | null;
  /** Prefixed with the caller's name; unique. */
  readonly idempotency_key: string | null;
  /** SHA-256 of the request that used the key, in hexadecimal. */
  readonly request_digest: string | null;
  /** Effects of finishing the job, as booleans. */
  readonly has_callback: Generated<number>;
  readonly has_url_secrets: Generated<number>;
}

/** The part of a request that all inputs of a job share. A table of its own, because it may be megabytes. */
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

/** Labels of jobs, which lists are filtered by. */
interface JobLabelsTable {
  readonly job_id: string;
  readonly name: string;
  readonly value: string;
}

/** Inputs: the unit that is queued, run, retried and fenced. */
interface InputsTable {
  readonly job_id: string;
  readonly input_index: number;
  status: InputStatus;
  /** Counts the leases; only the newest one may write. */
  attempt: Generated<number>;
  /** Exits of the worker process while it ran the input. */
  process_ends: Generated<number>;
  /** Exits of the whole service or node while it ran the input. */
  service_ends: Generated<number>;
  /** Transient failures. */
  transient_failures: Generated<number>;
  /** The order of leases (`priority.ts`); the queue of job messages has it, too. */
  readonly priority: Generated<number>;
  /** The dependencies that it needs, as `needsText` writes them. */
  needs: Generated<string>;
  /** The dependency that it waits for, or waited for last; null where it never met an outage. */
  waiting_for: string | null;
  /** The time at which it met that first. */
  waiting_since: string | null;
  /** JSON of the error that it met last (`AppErrorData`). */
  waiting_error: string | null;
  /** The last recorded progress. */
  bytes_done: Generated<number>;
  bytes_total: Generated<number>;
  /** JSON of the request's input. */
  input: string;
  /** True when the query of an address was erased that the input needs, as a boolean. */
  query_erased: Generated<number>;
  /** The job that runs it again, the newest where there are several; it may have been deleted. */
  retried_by: string | null;
  /** JSON of the name that callers see, without the query of an address; null for jobs of older releases. */
  readonly name: string | null;
  /** JSON of the result entry of a finished input. */
  result: string | null;
  /** SHA-256 of the manifest of the output, in hexadecimal; it tells the output from those of other attempts. */
  delivered_digest: string | null;
}

/** `reserved`: leased and not running (the glossary of `JobStore`). */
export type InputStatus = 'queued' | 'reserved' | 'running' | 'succeeded' | 'failed' | 'cancelled';

/** Callbacks: POST requests with the result of a job. */
interface CallbacksTable {
  readonly job_id: string;
  /** The full URL, with its secrets, until the callback is closed; then only its origin. */
  url: string;
  /** `waiting` for the job to finish, `due`, or closed. */
  state: 'waiting' | 'due' | 'delivered' | 'given_up';
  attempts: number;
  /** The time when the job finished. */
  ended_at: string | null;
  /** Null unless the callback is due. */
  next_attempt_at: string | null;
}

/** Reserved output paths of jobs whose inputs several nodes share. */
interface DestinationsTable {
  readonly job_id: string;
  /** An output path with its links resolved. */
  readonly place: string;
  readonly input_index: number;
}

interface SchemaVersionsTable {
  readonly version: number;
  readonly applied_at: string;
  /** The version that a release has to know to use the tables after this migration; null where it only adds. */
  readonly needs_version: number | null;
}

/** A single row that `probeWrite` writes. */
interface WriteProbeTable {
  readonly id: number;
  written_at: string;
  padding: string;
}

/** Nodes that share the store, each with a new row at every start. */
interface NodesTable {
  readonly node_id: string;
  /** Host and process, for messages. */
  readonly name: string;
  /** JSON of the settings that nodes compare. */
  settings: string;
  /** The last heartbeat, by the clock of the database: milliseconds since 1970. */
  seen_at_ms: number;
}

export type JobRow = Selectable<JobsTable>;

/** The database of the store, or a transaction in it. */
export type Database = Kysely<Tables>;
