import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import pg from 'pg';
import { databaseFileOf } from '#config/protected-paths.ts';
import { openSqliteEngine } from '#jobs/queue/sqlite-queue.ts';
import { probeStore } from '#jobs/store-probe.ts';
import { createJobsDatabase } from '../support/jobs/jobs-database.ts';
import { NO_LOG } from '../support/jobs/test-jobs.ts';
import { startPostgres } from '../support/servers/postgres-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const SETTINGS = { role: 'all', retention_hours: 1, outage_hours: 1, scratch_dir: '/nowhere' } as const;
const NEWER = "insert into schema_versions (version, applied_at, needs_version) values (1000, 'now', 1000)";

describe('the probe of the embedded store', () => {
  test('finds one that a process has open, and one that is not there yet', async () => {
    const folder = temporaryFolder();
    const settings = { ...SETTINGS, data_dir: folder };
    assert.match((await probeStore(settings)).detail, /which the first start makes/);
    const engine = await openSqliteEngine(folder, NO_LOG);
    try {
      assert.match((await probeStore(settings)).detail, new RegExp(`the process ${process.pid} has open`));
    } finally {
      await engine.close();
    }
  });

  test('refuses one of a newer release, and changes nothing of it', async () => {
    const folder = temporaryFolder();
    await (await openSqliteEngine(folder, NO_LOG)).close();
    const database = new DatabaseSync(databaseFileOf(folder));
    database.exec(NEWER);
    database.close();
    const before = readFileSync(databaseFileOf(folder));
    await assert.rejects(probeStore({ ...SETTINGS, data_dir: folder }), { reason: 'STORE_NEWER' });
    assert.deepEqual(readFileSync(databaseFileOf(folder)), before);
  });
});

describe('the probe of a shared store', async () => {
  const server = await startPostgres({ after });
  const probe = (url: string) =>
    probeStore({ ...SETTINGS, data_dir: join(temporaryFolder(), 'none'), database_url: url });

  test('finds a database with and without tables, makes none, and tells its time', async () => {
    const [migrated, empty] = await Promise.all([createJobsDatabase(server), server.createDatabase()]);
    for (const url of [migrated, empty]) {
      const { nowMs } = await probe(url);
      assert.equal(Number.isSafeInteger(nowMs), true);
    }
    const client = new pg.Client(empty);
    await client.connect();
    const { rows } = await client.query("select to_regclass('schema_versions') as found");
    await client.end();
    assert.deepEqual(rows, [{ found: null }]);
  });

  test('refuses tables of a newer release', async () => {
    const url = await createJobsDatabase(server);
    const client = new pg.Client(url);
    await client.connect();
    await client.query(NEWER);
    await client.end();
    await assert.rejects(probe(url), { reason: 'STORE_NEWER' });
  });

  test('names a database that is not there', async () => {
    const url = new URL(await server.createDatabase());
    url.pathname = '/none';
    await assert.rejects(probe(url.href), { reason: 'DATABASE_MISSING' });
  });
});
