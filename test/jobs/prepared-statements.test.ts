import assert from 'node:assert/strict';
import { after, describe, type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import { openPostgres } from '#jobs/store/postgres/postgres-database.ts';
import { PLANNED_BY_VALUES, PreparedStatements } from '#jobs/store/postgres/prepared-statements.ts';
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
