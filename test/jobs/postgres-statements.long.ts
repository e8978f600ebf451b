import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type Kysely, sql } from 'kysely';
import type { JobFilter } from '#jobs/store/job-store.ts';
import { openPostgres } from '#jobs/store/postgres/postgres-database.ts';
import { listJobs } from '#jobs/store/read-jobs.ts';
import type { Tables } from '#jobs/store/tables.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';

const server = await startPostgres({ after });
/** More than PostgreSQL needs to keep the plan of a prepared statement. */
const USES = 20;

const JOBS = 20_000;
/** A page of 50 reads 200 rows; where one job in 50 is of its status, a merge of two indexes skips the others in between. */
const MAX_ROWS = 5_000;

/** Jobs as a busy service has them: most are of one caller, one operation and one project, and few of others. */
async function fill(url: string): Promise<void> {
  const isRare = 'i % 2000 = 7';
  await server.query(
    url,
    `insert into jobs (job_id, sync, status, queued_at, finished_at, inputs_total, inputs_done, caller)
     select 'job-' || lpad(i::text, 8, '0'), 0, case when i % 50 = 0 then 'failed' else 'succeeded' end,
       '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z', 1, 1, case when ${isRare} then 'rare' else 'busy' end
     from generate_series(1, ${JOBS}) i`,
  );
  await server.query(
    url,
    `insert into job_requests (job_id, operation, output, params)
     select job_id, case when caller = 'rare' then 'verify' else 'c2pa-video' end, 'null', 'null' from jobs`,
  );
  await server.query(
    url,
    `insert into inputs (job_id, input_index, status, input) select job_id, 0, status, '{}' from jobs`,
  );
  await server.query(url, `insert into job_labels (job_id, name, value) select job_id, 'project', caller from jobs`);
  await server.query(url, 'vacuum analyze');
}

const FREQUENT: readonly Partial<JobFilter>[] = [
  {},
  { caller: 'busy' },
  { submitter: 'busy' },
  { operation: 'c2pa-video' },
  { label: { name: 'project', value: 'busy' } },
  { status: 'failed' },
  { caller: 'busy', status: 'succeeded' },
];
const RARE: readonly Partial<JobFilter>[] = [
  { caller: 'rare' },
  { submitter: 'nobody' },
  { operation: 'verify' },
  { label: { name: 'project', value: 'rare' } },
  { label: { name: 'project', value: '%' } },
  { status: 'queued' },
  { caller: 'nobody', status: 'succeeded' },
];

test('a page of jobs takes few rows, whatever is asked for, from wherever, and however often', async (t) => {
  const url = await createJobsDatabase(server);
  await fill(url);
  const database = await openPostgres(url, 1);
  t.after(() => database.close());
  const rowsRead = (filter: Partial<JobFilter>): Promise<number> =>
    database.transaction(async (db) => {
      const before = await rowsReadSoFar(db);
      await listJobs(db, { limit: 50, ...filter });
      return (await rowsReadSoFar(db)) - before;
    });
  const middle = `job-${String(JOBS / 2).padStart(8, '0')}`;
  for (const before of [undefined, middle]) {
    for (const filter of FREQUENT) for (let use = 0; use < USES; use += 1) await rowsRead({ ...filter, before });
    for (const filter of [...FREQUENT, ...RARE]) {
      const rows = await rowsRead({ ...filter, before });
      assert.ok(rows < MAX_ROWS, `${JSON.stringify({ ...filter, before })} read ${rows} rows`);
    }
  }
});

/** Returns the rows that the connection has read since it reported them last, which it does between transactions only. */
async function rowsReadSoFar(db: Kysely<Tables>): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::int as count from pg_stat_xact_user_tables
    where relname in ('jobs', 'job_requests', 'job_labels', 'inputs')`.execute(db);
  return rows[0]?.count ?? 0;
}
