import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { type Kysely, sql } from 'kysely';
import pg from 'pg';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { type Migration, migrations } from '#jobs/store/migrations.ts';
import { databaseError } from '#jobs/store/postgres/database-error.ts';
import { openPostgres, PostgresDatabase } from '#jobs/store/postgres/postgres-database.ts';
import { PostgresPool } from '#jobs/store/postgres/postgres-pool.ts';
import { submitJob } from '#jobs/store/submit-job.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { ended, nodeConfig, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { testIdentity, writeIdentity } from '../support/manifests/test-identity.ts';
import { startPgBouncer } from '../support/servers/pgbouncer.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { startProxy } from '../support/servers/unreliable-proxy.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** A migration of the next release. */
const addColumn: Migration = async (db) => {
  await db.schema.alterTable('inputs').addColumn('next', 'text').execute();
};

const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';
/** The certificate of the server, which is for another name than the address that it is reached at. */
const tls = writeIdentity(
  temporaryFolder(),
  await testIdentity({ leaf: { commonName: 'db.example.com', extendedKeyUsages: [SERVER_AUTH] } }),
);
const server = await startPostgres({ after }, [], tls);
const PASSWORD = 'the-secret-password';

async function refusedFor(reason: Reason, url: string): Promise<AppError> {
  const refusal = await openPostgres(url, 2).then(
    (database) => database.close(),
    (error: unknown) => error,
  );
  assert(refusal instanceof AppError, `expected ${reason}, not ${String(refusal)}`);
  assert.equal(refusal.reason, reason);
  assert(!JSON.stringify([refusal.message, refusal.details]).includes(PASSWORD));
  return refusal;
}

const withUser = (url: string, user: string) => url.replace('postgres@', `${user}:${PASSWORD}@`);

describe('opening the shared database', () => {
  test('is refused where no server answers', async () => {
    const { host, port } = ownAddress();
    await refusedFor('DATABASE_UNREACHABLE', `postgres://me:${PASSWORD}@${host}:${port}/jobs`);
    await refusedFor('DATABASE_UNREACHABLE', `postgres://me:${PASSWORD}@no-such-host.invalid/jobs`);
  });

  test('is refused where there is no such database or user', async () => {
    const url = await server.createDatabase();
    await refusedFor('DATABASE_MISSING', url.replace(/[^/]+$/, 'absent'));
    await refusedFor('DATABASE_REFUSES_LOGIN', withUser(url, 'nobody'));
  });

  test('is refused where nothing certifies the server, and where its certificate is for another name', async () => {
    const url = await server.createDatabase();
    const verified = `${url}?sslrootcert=${tls.certificatePath}&uselibpqcompat=true&sslmode`;
    await (await openPostgres(`${verified}=verify-ca`, 2)).close();
    const unknown = await refusedFor('DATABASE_CERTIFICATE_UNTRUSTED', `${url}?sslmode=verify-full`);
    assert.match(unknown.message, /self-signed certificate in certificate chain.*sslrootcert/);
    const named = await refusedFor('DATABASE_CERTIFICATE_UNTRUSTED', `${verified}=verify-full`);
    assert.match(named.message, /not in the cert's list/);
  });

  test('is refused where the file of the authority cannot be read, or the server has no TLS', async (t) => {
    const url = await server.createDatabase();
    const missing = `${url}?sslmode=verify-full&sslrootcert=${temporaryFolder()}/none.pem`;
    assert.match((await refusedFor('DATABASE_CERTIFICATE_UNTRUSTED', missing)).message, /none\.pem/);
    const pooler = await startPgBouncer(server.address, 'session');
    t.after(pooler.stop);
    await refusedFor('DATABASE_UNREACHABLE', `${pooler.through(url)}?sslmode=verify-full`);
  });

  test('is refused where the user may not make tables', async () => {
    const url = await server.createDatabase();
    await server.query(url, 'create role limited login');
    await refusedFor('DATABASE_FORBIDS', withUser(url, 'limited'));
  });

  test('is refused where nothing can be written', async () => {
    const url = await server.createDatabase();
    const [name] = url.split('/').slice(-1);
    await server.query(url, `alter database ${name} set default_transaction_read_only = on`);
    await refusedFor('DATABASE_READ_ONLY', url);
  });

  test('is refused where the server says that it is of an old version', async () => {
    const url = await server.createDatabase();
    const [name] = url.split('/').slice(-1);
    // An old server would be 77 MB more to fetch; what is asked for the version stands in front of what the server has.
    await server.query(url, 'create schema old');
    await server.query(
      url,
      `create function old.current_setting(name text) returns text language sql as $$
        select case name when 'server_version_num' then '120022' else pg_catalog.current_setting(name) end $$`,
    );
    await server.query(url, `alter database ${name} set search_path = old, pg_catalog, public`);
    assert.equal((await refusedFor('DATABASE_TOO_OLD', url)).details['version'], '12.22');
  });

  test('goes on with tables of the next release, and is refused where these need that', async () => {
    const url = await server.createDatabase();
    await (await openPostgres(url, 2, [...migrations, addColumn])).close();
    await (await openPostgres(url, 2)).close();
    await server.query(url, 'update schema_versions set needs_version = version');
    await refusedFor('STORE_NEWER', url);
  });

  test('brings the tables up to date once, however many nodes start together', async () => {
    const url = await server.createDatabase();
    const opened = await Promise.all(Array.from({ length: 6 }, () => openPostgres(url, 2)));
    await Promise.all(opened.map((database) => database.close()));
    const [row] = await server.query(url, 'select count(*)::integer as count from schema_versions');
    assert.equal(row?.['count'], migrations.length);
  });
});

test('a server that takes a connection and never answers counts as unreachable', async (t) => {
  const proxy = await startProxy(t, server.address);
  proxy.freeze();
  const client = new pg.Client({
    connectionString: proxy.through(await server.createDatabase()),
    connectionTimeoutMillis: 1,
  });
  const error = await client.connect().catch((cause: unknown) => databaseError('address', cause));
  assert.equal((error as AppError).reason, 'DATABASE_UNREACHABLE');
});

test('the open database returns the rows of every statement, which the supervision of pg-boss needs', async (t) => {
  const database = await openPostgres(await server.createDatabase(), 2);
  t.after(() => database.close());
  const results = await database.executeSql('select 1 as first; select 2 as second');
  assert.deepEqual(
    [results].flat().map(({ rows }) => rows),
    [[{ first: 1 }], [{ second: 2 }]],
  );
});

test('a connection that the server closes between two statements fails the transaction that has it, and nothing else', async (t) => {
  const url = await server.createDatabase();
  const database = await openPostgres(url, 2);
  t.after(() => database.close());
  const closed = database.transaction(async (db) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db);
    const pid = rows[0]?.pid;
    await server.query(url, `select pg_terminate_backend(${pid})`);
    await until(async () => {
      const sessions = await server.query(url, `select pid from pg_stat_activity where pid = ${pid}`);
      return sessions.length === 0;
    });
    await sql`select 1`.execute(db);
  });
  await assert.rejects(closed, { reason: 'DATABASE_UNREACHABLE' });
});

test('a statement that gets no connection in time fails, instead of waiting behind others for ever', async (t) => {
  const pool = await PostgresPool.open(await server.createDatabase(), 1, 50);
  const database = new PostgresDatabase(pool, 'address');
  const [held, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const holding = database.read((db) =>
    db.connection().execute(() => {
      held.resolve();
      return done.promise;
    }),
  );
  t.after(async () => {
    await holding;
    await database.close();
  });
  await held.promise;
  await assert.rejects(
    database.read((db) => sql`select 1`.execute(db)),
    { reason: 'DATABASE_UNREACHABLE' },
  );
  done.resolve();
  await holding;
  assert.equal((await database.executeSql('select 1')).rows.length, 1);
});

describe('a pooler in front of the shared database', () => {
  for (const mode of ['transaction', 'statement'] as const) {
    test(`is refused where it gives sessions to others after every ${mode}`, async (t) => {
      const pooler = await startPgBouncer(server.address, mode);
      t.after(pooler.stop);
      await refusedFor('DATABASE_POOLED', pooler.through(await server.createDatabase()));
    });
  }

  test('is refused also while others are at work there', async (t) => {
    const pooler = await startPgBouncer(server.address, 'transaction');
    t.after(pooler.stop);
    const url = pooler.through(await server.createDatabase());
    const busy = new AbortController();
    const others = Array.from({ length: 4 }, async () => {
      while (!busy.signal.aborted) await server.query(url, 'begin; select pg_sleep(0.002); commit');
    });
    await refusedFor('DATABASE_POOLED', url);
    busy.abort();
    await Promise.all(others);
  });

  test('does where it keeps sessions apart', async (t) => {
    const pooler = await startPgBouncer(server.address, 'session');
    t.after(pooler.stop);
    const url = pooler.through(await server.createDatabase());
    const jobs = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
    assert.equal((await ended(jobs, (await jobs.submit(scripts(['progress 1']))).job_id)).status, 'succeeded');
  });
});

describe('a migration', () => {
  test('leaves nodes of the version before at work', async (t) => {
    const url = await server.createDatabase();
    const old = await startedJobs(t, { config: nodeConfig(temporaryFolder(), url) });
    const running = await old.submit(scripts(['sleep 300', 'sleep 300', 'sleep 300']));
    const steps = [...migrations, addFixture];
    const opened = await Promise.all([1, 2, 3].map(() => openPostgres(url, 2, steps)));
    const [row] = await server.query(url, 'select max(version) as version from schema_versions');
    assert.equal(row?.['version'], steps.length);
    assert.equal((await ended(old, running.job_id)).status, 'succeeded');
    assert.equal((await ended(old, (await old.submit(scripts(['progress 1']))).job_id)).status, 'succeeded');
    // A node of the older version runs the jobs that a newer one submits.
    for (const database of opened) {
      await database.transaction((db) =>
        submitJob(db, {
          ...scripts(['progress 1']),
          jobId: new JobIds().next(),
          queuedAt: new Date(),
        }),
      );
      await database.close();
    }
  });
});

/** A migration of a later release, which adds what earlier ones do not know. */
async function addFixture(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .alterTable('jobs')
    .addColumn('fixture', 'text', (column) => column.notNull().defaultTo('none'))
    .execute();
  await db.schema.createTable('fixtures').addColumn('name', 'text').execute();
}
