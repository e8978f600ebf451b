import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { type Kysely, sql } from 'kysely';
import type { JobFilter } from '#jobs/store/job-store.ts';
import { openPostgres } from '#jobs/store/postgres/postgres-database.ts';
import { PLANNED_BY_VALUES, PreparedStatements } from '#jobs/store/postgres/prepared-statements.ts';
import { listJobs } from '#jobs/store/read-jobs.ts';
import type { Tables } from '#jobs/store/tables.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';

const server = await startPostgres({ after });
/** More than a statement needs to be prepared, and PostgreSQL to keep its plan. */
const USES = 20;

/** Opens a database with a table of one analyzed row, and a statement that finds rows by their identifiers. */
async function openTable(t: TestContext) {
  const url = await createJobsDatabase(server);
  const columns = 'id integer primary key, value integer not null';
  await server.query(url, `create table things (${columns}) with (autovacuum_enabled = off)`);
  await server.query(url, 'insert into things values (1, 1)');
  await server.query(url, 'vacuum analyze things');
  const database = await openPostgres(url, 1);
  t.after(() => database.close());
  const find = (id: number) => database.read((db) => sql`select value from things where id = ${id}`.execute(db));
  for (let use = 0; use < USES; use += 1) await find(1);
  return { url, database, find };
}

describe('statements that are used often', () => {
  test('get a name, up to a limit, and others none', () => {
    const statements = new PreparedStatements();
    const nameAfter = (text: string, uses: number) =>
      Array.from({ length: uses }, () => statements.use(text)).at(-1) ?? null;
    assert.equal(nameAfter('select 1', 1), null);
    assert.equal(nameAfter('begin', USES), null);
    assert.equal(nameAfter(`select 1 ${PLANNED_BY_VALUES}`, USES), null);
    const names = Array.from({ length: 1_000 }, (_, index) => nameAfter(`select ${index}`, USES));
    const given = names.filter((name) => name !== null);
    assert.equal(given.length, 100);
    assert.equal(new Set(given).size, 100);
    assert.equal(nameAfter('select 1', 1), names[1]);
  });

  test('are prepared in the database', async (t) => {
    const { database } = await openTable(t);
    const prepared = await database.read((db) =>
      sql`select statement from pg_prepared_statements where statement like '%things%'`.execute(db),
    );
    assert.deepEqual(prepared.rows, [{ statement: 'select value from things where id = $1' }]);
  });

  test('work on after a migration has changed what they return', async (t) => {
    const { url, database, find } = await openTable(t);
    await server.query(url, "alter table things alter column value type text using 'text'");
    assert.deepEqual((await find(1)).rows, [{ value: 'text' }]);
    for (let use = 0; use < USES; use += 1) await find(1);
    await server.query(url, 'alter table things alter column value type integer using 2');
    const found = await database.transaction((db) => sql`select value from things where id = ${1}`.execute(db));
    assert.deepEqual(found.rows, [{ value: 2 }]);
  });

  test('read no grown table whole for long, though it was not analyzed', async (t) => {
    const { url, database, find } = await openTable(t);
    const wholeReads = async () => {
      await database.read((db) => sql`select pg_stat_force_next_flush()`.execute(db));
      const [row] = await server.query(
        url,
        "select seq_scan::integer from pg_stat_user_tables where relname = 'things'",
      );
      return Number(row?.['seq_scan']);
    };
    await server.query(url, 'insert into things select id, id from generate_series(2, 10000) as id');
    for (let use = 0; use < USES; use += 1) await find(1);
    const now = performance.now.bind(performance);
    t.mock.method(performance, 'now', () => now() + 60_000);
    await find(1);
    const before = await wholeReads();
    for (let use = 0; use < USES; use += 1) await find(1);
    assert(before > 0);
    assert.equal(await wholeReads(), before);
  });
});

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
