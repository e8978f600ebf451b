import { sql } from 'kysely';
import { yieldingEntries } from '#concurrency/map-concurrent.ts';
import { DEFAULT_IDENTITY } from '#config/identities.ts';
import { MAX_INPUT_NAMES, MAX_LISTED_INPUT_NAMES } from '#contract/input-name-limits.ts';
import type { ListedJob } from '#contract/job-list.ts';
import { signs } from '#contract/signing-operations.ts';
import type { OperationName } from '#operations/operation.ts';
import type { JobScope } from '../caller.ts';
import type { JobSnapshot } from '../job.ts';
import { firstJobIdAt } from '../job-ids.ts';
import { boundedColumns, givenRows, jsonObject, labelsOf, reasonOf, withoutIndex } from './dialect.ts';
import type { JobFilter, JobPage, RecordedRequest, RetriedJob } from './job-store.ts';
import type { Database, JobRow, Tables } from './tables.ts';
import { withoutQueries } from './url-secrets.ts';

/** The columns of a job that callers see. */
const VISIBLE_COLUMNS = [
  'jobs.job_id',
  'job_requests.operation',
  'status',
  'caller',
  'identity',
  'client_reference',
  'retried_from',
  'queued_at',
  'started_at',
  'finished_at',
  'inputs_total',
  'inputs_done',
  'inputs_failed',
  'inputs_cancelled',
  'first_reason',
  'bytes_done',
  'bytes_total',
] as const;

/** Those columns, and what other tables hold of a job. */
interface VisibleJob
  extends Omit<
    JobRow,
    'sync' | 'cancelled_at' | 'idempotency_key' | 'request_digest' | 'has_callback' | 'has_url_secrets'
  > {
  readonly operation: OperationName;
  /** JSON of the names of the first inputs; null where none has one. */
  readonly names: string | null;
  /** JSON of the labels; null or `{}` where there are none. */
  readonly labels: string | null;
  /** JSON of the progress of running inputs; null where none runs. */
  readonly running: string | null;
}

/** A result entry as it was recorded. An input that was cancelled while it was queued has none. */
const RECORDED = sql`coalesce(result, '{"input_index":' || input_index || ',"status":"cancelled"}')`;

/** A JSON array of result entries of finished inputs. The name of an input is put in behind the opening brace of what was recorded. */
const RESULT_ENTRIES = sql<string>`'[' || coalesce(string_agg(
  case when name is null then ${RECORDED} else '{"input_name":' || name || ',' || substr(${RECORDED}, 2) end,
  ',' order by input_index), '') || ']'`;

/** Makes the JSON of the first names. The key of the inputs has them in order; sorting them again took a sixth of a list's time. */
const namesOfFirst = (count: number) => sql<string | null>`(
  select '[' || string_agg(name, ',') || ']' from (
    select name from inputs where inputs.job_id = jobs.job_id and input_index < ${sql.lit(count)}
    order by input_index) as named)`;

/** The progress of running inputs together. `inputsDone` is the number that the parts which are done make up: two halves count 1. */
const RUNNING = {
  bytesDone: 'sum(bytes_done)',
  bytesTotal: 'sum(bytes_total)',
  inputsDone: `sum(case when bytes_done < bytes_total then cast(bytes_done as double precision) / bytes_total
    when bytes_total > 0 then 1 end)`,
} as const;

/** Makes the JSON of that. A part of the one statement, so that no input is counted twice or not at all. */
function runningProgressOf(db: Database) {
  // The first condition on the status is that of the index.
  return sql<string | null>`case when jobs.status = 'running' then (
    select ${jsonObject(db, RUNNING)} from inputs
    where inputs.job_id = jobs.job_id and inputs.status in ('reserved', 'running') and inputs.status = 'running') end`;
}

const RESULTS = sql<string | null>`case when jobs.finished_at is not null then (
  select ${RESULT_ENTRIES} from inputs where inputs.job_id = jobs.job_id) end`;

/** Implements `JobStore.findJob`. */
export async function findJob(db: Database, jobId: string, { caller }: JobScope = {}): Promise<JobSnapshot | null> {
  const job = await db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(VISIBLE_COLUMNS)
    .select([RESULTS.as('results'), namesOfFirst(MAX_INPUT_NAMES).as('names'), labelsOf(db).as('labels')])
    .select(runningProgressOf(db).as('running'))
    .where('jobs.job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
  if (job === undefined) return null;
  return { ...listedJob(job), resultsJson: job.results ?? '[]' };
}

/** Implements `JobStore.listJobs`. Identifiers sort by submission time. */
export async function listJobs(db: Database, filter: JobFilter): Promise<JobPage> {
  const { limit, label, jobIds, before } = filter;
  const conditions = conditionsOf(filter);
  // Given identifiers find the jobs, and no index of a condition does.
  const first = jobIds === undefined ? conditions[0] : undefined;
  const others = first === undefined ? conditions : conditions.slice(1);
  const jobId = sql.ref<string>(first?.jobId ?? 'jobs.job_id');
  let query = db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(VISIBLE_COLUMNS)
    .select([namesOfFirst(MAX_LISTED_INPUT_NAMES).as('names'), labelsOf(db).as('labels')])
    .select(runningProgressOf(db).as('running'))
    .orderBy(jobId, 'desc')
    .limit(limit + 1);
  if (label !== undefined) query = query.innerJoin('job_labels', 'job_labels.job_id', 'jobs.job_id');
  for (const [column, value] of first?.equals ?? []) query = query.where(sql.ref(column), '=', value);
  for (const [column, value] of others.flatMap(({ equals }) => equals)) {
    query = query.where(withoutIndex(db, column), '=', value);
  }
  if (jobIds !== undefined) query = query.where(jobId, 'in', jobIds);
  if (before !== undefined) {
    for (const column of boundedColumns(db, first?.jobId ?? 'jobs.job_id')) query = query.where(column, '<', before);
  }
  const rows = await query.execute();
  return { jobs: rows.slice(0, limit).map(listedJob), more: rows.length > limit };
}

/** A condition of a list. Its index has the columns that it compares, and then the identifier, by which the list is ordered. */
interface Condition {
  readonly equals: readonly (readonly [column: string, value: string])[];
  /** The column with the identifier. */
  readonly jobId: string;
}

/** Implements `JobStore.recentJobs`. Each part is read by an index, so that the cost does not grow with the history. */
export async function recentJobs(db: Database, since: Date, limit: number): Promise<JobPage> {
  const ids = () =>
    db
      .selectFrom('jobs')
      .select('job_id')
      .limit(limit + 1);
  const parts = [
    ids().where('job_id', '>=', firstJobIdAt(since)).orderBy('job_id', 'desc'),
    ids().where('status', '=', 'running').orderBy('job_id', 'desc'),
    ids().where('finished_at', '>=', since.toISOString()).orderBy('finished_at', 'desc'),
  ];
  const jobIds = new Set<string>();
  for (const part of parts) for (const job of await part.execute()) jobIds.add(job.job_id);
  return jobIds.size === 0 ? { jobs: [], more: false } : await listJobs(db, { limit, jobIds: [...jobIds] });
}

/** Returns the conditions of a list. The one that few jobs meet, as far as can be told, comes first: its index finds the jobs. */
function conditionsOf(filter: JobFilter): readonly Condition[] {
  const { status, operation, clientReference, label, caller, submitter } = filter;
  const mostHaveStatus = status === 'succeeded';
  return [
    conditionOn('jobs', { client_reference: clientReference }),
    conditionOn('job_labels', { ...label }),
    conditionOn('jobs', { status: mostHaveStatus ? undefined : status }),
    conditionOn('jobs', { caller }),
    conditionOn('jobs', { caller: submitter }),
    conditionOn('job_requests', { operation }),
    conditionOn('jobs', { status: mostHaveStatus ? status : undefined }),
  ].filter(({ equals }) => equals.length > 0);
}

/** Returns the condition that columns of a table have these values; without the values that are not asked for. */
function conditionOn(table: keyof Tables, values: Readonly<Record<string, string | undefined>>): Condition {
  const equals = Object.entries(values).flatMap(([column, value]) =>
    value === undefined ? [] : [[`${table}.${column}`, value] as const],
  );
  return { equals, jobId: `${table}.job_id` };
}

/** Implements `JobStore.finishedAmong`. */
export async function finishedAmong(db: Database, jobIds: readonly string[]): Promise<readonly string[]> {
  const asked = jobIds.map((jobId) => ({ job_id: jobId }));
  const { rows } = await sql<{ job_id: string }>`
    select job_id from ${givenRows(db, { job_id: 'text' }, asked)} as given
    where not exists (select 1 from jobs where jobs.job_id = given.job_id and finished_at is null)`.execute(db);
  return rows.map((job) => job.job_id);
}

/** Implements `JobStore.finishedInputs`. */
export async function finishedInputs(db: Database, jobId: string): Promise<readonly number[]> {
  const inputs = await db
    .selectFrom('inputs')
    .select('input_index')
    .where('job_id', '=', jobId)
    .where('status', 'in', ['succeeded', 'failed', 'cancelled'])
    .orderBy('input_index')
    .execute();
  return inputs.map((input) => input.input_index);
}

/** Implements `JobStore.resultEntries`. */
export async function resultEntries(
  db: Database,
  jobId: string,
  inputIndexes: readonly number[],
  { caller }: JobScope = {},
): Promise<string> {
  const { entries } = await db
    .selectFrom('inputs')
    .select(RESULT_ENTRIES.as('entries'))
    .where('job_id', '=', jobId)
    .where('input_index', 'in', inputIndexes)
    .$if(caller !== undefined, (inputs) =>
      inputs.where(({ exists, selectFrom }) =>
        exists(
          selectFrom('jobs')
            .select('job_id')
            .where('job_id', '=', jobId)
            .where('caller', '=', caller ?? null),
        ),
      ),
    )
    .executeTakeFirstOrThrow();
  return entries;
}

/** Returns a job without its results, in the shape of the contract. */
function listedJob(job: VisibleJob): ListedJob {
  return {
    job_id: job.job_id,
    status: job.status,
    operation: job.operation,
    ...(job.caller !== null && { caller: job.caller }),
    ...(signs(job.operation) && { identity: job.identity ?? DEFAULT_IDENTITY }),
    ...(job.client_reference !== null && { client_reference: job.client_reference }),
    ...labelsIn(job),
    ...(job.retried_from !== null && { retried_from: job.retried_from }),
    input_count: job.inputs_total,
    input_names: JSON.parse(job.names ?? '[]') as string[],
    counts: countsOf(job),
    ...(job.first_reason !== null && { first_reason: job.first_reason }),
    timing: timingOf(job),
    ...(job.finished_at === null && { progress: progressOf(job) }),
  };
}

function labelsIn(job: Pick<VisibleJob, 'labels'>): Pick<ListedJob, 'labels'> {
  const labels: Record<string, string> = JSON.parse(job.labels ?? '{}');
  return Object.keys(labels).length === 0 ? {} : { labels };
}

function countsOf({ inputs_done, inputs_failed, inputs_cancelled }: VisibleJob): JobSnapshot['counts'] {
  return {
    succeeded: inputs_done - inputs_failed,
    failed: inputs_failed - inputs_cancelled,
    cancelled: inputs_cancelled,
  };
}

function timingOf({ queued_at, started_at, finished_at }: VisibleJob): JobSnapshot['timing'] {
  return { queued_at, ...(started_at !== null && { started_at }), ...(finished_at !== null && { finished_at }) };
}

function progressOf(job: VisibleJob): NonNullable<JobSnapshot['progress']> {
  const { inputs_done, inputs_total } = job;
  const running: { readonly [Part in keyof typeof RUNNING]?: number | null } = JSON.parse(job.running ?? '{}');
  return {
    inputs_done,
    inputs_total,
    bytes_done: job.bytes_done + (running.bytesDone ?? 0),
    bytes_total: job.bytes_total + (running.bytesTotal ?? 0),
    fraction: Math.min(1, (inputs_done + (running.inputsDone ?? 0)) / inputs_total),
  };
}

/** Implements `JobStore.findRequest`. */
export async function findRequest(db: Database, jobId: string, scope: JobScope = {}): Promise<RecordedRequest | null> {
  const job = await requestedJob(db, jobId, scope);
  if (job === undefined) return null;
  const rows = await db
    .selectFrom('inputs')
    .select('input')
    .where('job_id', '=', jobId)
    .orderBy('input_index')
    .execute();
  const inputs: string[] = [];
  for await (const [, { input }] of yieldingEntries(rows)) inputs.push(withoutQueriesIn(input));
  const { labels } = labelsIn(job);
  const fields = {
    output: job.output,
    params: withoutQueriesIn(job.params),
    client_reference: JSON.stringify(job.client_reference),
    labels: JSON.stringify(labels ?? null),
  };
  const given = Object.entries(fields).filter(([, json]) => json !== 'null');
  const members = [`"inputs":[${inputs.join(',')}]`, ...given.map(([name, json]) => `"${name}":${json}`)];
  return { operation: job.operation, bodyJson: `{${members.join(',')}}` };
}

function withoutQueriesIn(json: string): string {
  return JSON.stringify(withoutQueries(JSON.parse(json)));
}

/** Implements `JobStore.findRetriedJob`. */
export async function findRetriedJob(db: Database, jobId: string, scope: JobScope = {}): Promise<RetriedJob | null> {
  const job = await requestedJob(db, jobId, scope);
  if (job === undefined) return null;
  const unsuccessful = await db
    .selectFrom('inputs')
    .select(['input_index', 'status', 'input', 'name', 'query_erased', 'retried_by', reasonOf(db).as('reason')])
    .where('job_id', '=', jobId)
    .where('status', 'in', ['failed', 'cancelled'])
    .orderBy('input_index')
    .execute();
  return {
    operation: job.operation,
    caller: job.caller,
    identity: job.identity,
    clientReference: job.client_reference,
    labels: labelsIn(job).labels ?? null,
    outputJson: job.output,
    paramsJson: job.params,
    isFinished: job.finished_at !== null,
    inputCount: job.inputs_total,
    unsuccessful: unsuccessful.map(({ input_index, status, input, name, query_erased, retried_by, reason }) => ({
      inputIndex: input_index,
      status: status === 'failed' ? status : 'cancelled',
      reason,
      isRetried: retried_by !== null,
      inputJson: input,
      name: name === null ? null : (JSON.parse(name) as string),
      isErased: query_erased === 1,
    })),
  };
}

/** Reads a job in the scope with the part of its request that all inputs share; undefined where there is none. */
function requestedJob(db: Database, jobId: string, { caller }: JobScope) {
  return db
    .selectFrom('jobs')
    .innerJoin('job_requests', 'job_requests.job_id', 'jobs.job_id')
    .select(['operation', 'output', 'params', 'caller', 'identity', 'client_reference', 'finished_at', 'inputs_total'])
    .select(labelsOf(db).as('labels'))
    .where('jobs.job_id', '=', jobId)
    .$if(caller !== undefined, (jobs) => jobs.where('caller', '=', caller ?? null))
    .executeTakeFirst();
}
