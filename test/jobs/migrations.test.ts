import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync, type SQLInputValue } from 'node:sqlite';
import { describe, test } from 'node:test';
import { Kysely, SqliteDialect } from 'kysely';
import { NO_PROGRESS } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { openSqliteEngine } from '#jobs/queue/sqlite-queue.ts';
import { cancelledEntry } from '#jobs/result-entries.ts';
import { migrate, migrations } from '#jobs/store/migrations.ts';
import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';
import type { Tables } from '#jobs/store/tables.ts';
import { ALL_JOBS } from '../support/jobs/leases.ts';
import { NO_LOG, scripts } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Migrations of the release that had callers, and neither labels nor names of inputs. */
const BEFORE_DESCRIPTIONS = 5;

const ids = new JobIds();

/** Makes a database as an older release has it, and runs statements in it. */
async function oldDatabase(folder: string, version: number, statements: string): Promise<void> {
  await mkdir(folder, { mode: 0o700, recursive: true });
  const database = new DatabaseSync(join(folder, 'jobs.sqlite'));
  const prepare = (text: string) => {
    const statement = database.prepare(text);
    return {
      reader: statement.columns().length > 0,
      all: (values: readonly unknown[]) => statement.all(...(values as SQLInputValue[])),
      run: (values: readonly unknown[]) => statement.run(...(values as SQLInputValue[])),
      iterate: (values: readonly unknown[]) => statement.iterate(...(values as SQLInputValue[])),
    };
  };
  const dialect = new SqliteDialect({ database: { prepare, close: () => undefined } });
  await migrate(new Kysely<Tables>({ dialect }), folder, migrations.slice(0, version));
  database.exec(statements);
  database.close();
}

/** Migrations of the release that had those, and no retries. */
const BEFORE_RETRIES = 6;

/** Migrations of the release that had all of that, and no order of inputs. */
const BEFORE_PRIORITIES = 8;

/** Migrations of the release that had all of that, and did not record which inputs a retry has. */
const BEFORE_RETRIED_INPUTS = 9;

describe('a database of the next release', () => {
  test('is used as it is, before and after', async () => {
    const folder = join(temporaryFolder(), 'data');
    await oldDatabase(folder, migrations.length, 'alter table inputs add column next text');
    const version = `insert into schema_versions (version, applied_at) values (${migrations.length + 1}, '2030-01-01')`;
    await oldDatabase(folder, migrations.length, version);
    const jobId = ids.next();
    const store = await openSqlite(folder);
    await store.submitJob({ ...scripts(['x']), jobId, queuedAt: new Date() });
    await store.close();
    const again = await openSqlite(folder);
    assert.equal((await again.findJob(jobId))?.status, 'queued');
    await again.close();
  });
});

describe('a database of an older release', () => {
  test('tells of the failed inputs of a job that was retried that a retry has them', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const [first, retry, other] = [ids.next(), ids.next(), ids.next()];
    const job = (jobId: string, retriedFrom: string | null) =>
      `insert into jobs (job_id, sync, status, queued_at, finished_at, inputs_total, retried_from)
         values ('${jobId}', 0, 'failed', '2026-11-21T10:00:00.000Z', '2026-11-21T10:00:00.000Z', 2, ${retriedFrom === null ? 'null' : `'${retriedFrom}'`});
       insert into job_requests (job_id, operation, output, params) values ('${jobId}', 'verify', 'null', 'null');
       insert into inputs (job_id, input_index, status, input) values ('${jobId}', 0, 'failed', '{}'), ('${jobId}', 1, 'cancelled', '{}');`;
    await oldDatabase(folder, BEFORE_RETRIED_INPUTS, job(first, null) + job(retry, first) + job(other, null));
    const store = await openSqlite(folder);
    t.after(() => store.close());
    const { unsuccessful } = (await store.findRetriedJob(first)) ?? assert.fail();
    assert.deepEqual(
      unsuccessful.map(({ isRetried }) => isRetried),
      [true, false],
    );
    const filter = { before: ids.next() };
    assert.deepEqual(await store.findFailedJobs(filter, 10), [retry, other]);
    assert.equal(await store.countLeftOut(filter), 1);
  });

  test('tells of no input whose address may have lost its query that it can be retried', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const jobIds = [0, 1].map(() => ids.next());
    const rowsOf = (jobId: string, hasUrlSecrets: number) =>
      `insert into jobs (job_id, sync, status, queued_at, finished_at, inputs_total, has_url_secrets)
         values ('${jobId}', 0, 'failed', '2026-11-21T10:00:00.000Z', '2026-11-21T10:00:00.000Z', 1, ${hasUrlSecrets});
       insert into job_requests (job_id, operation, output, params) values ('${jobId}', 'verify', 'null', 'null');
       insert into inputs (job_id, input_index, status, input) values ('${jobId}', 0, 'failed', '{}');`;
    await oldDatabase(folder, BEFORE_RETRIES, jobIds.map(rowsOf).join(''));
    const store = await openSqlite(folder);
    t.after(() => store.close());
    const found = await Promise.all(jobIds.map((jobId) => store.findRetriedJob(jobId)));
    assert.deepEqual(
      found.map((job) => job?.unsuccessful.map(({ isErased }) => isErased)),
      [[false], [true]],
    );
  });

  test('keeps its jobs, whose inputs have no names', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const jobId = ids.next();
    await oldDatabase(
      folder,
      BEFORE_DESCRIPTIONS,
      `insert into jobs (job_id, sync, status, queued_at, inputs_total)
         values ('${jobId}', 0, 'queued', '2026-11-21T10:00:00.000Z', 1);
       insert into job_requests (job_id, operation, output, params) values ('${jobId}', 'verify', 'null', 'null');
       insert into inputs (job_id, input_index, status, input) values ('${jobId}', 0, 'queued', '{}')`,
    );
    const store = await openSqlite(folder);
    t.after(() => store.close());
    const [listed] = (await store.listJobs({ limit: 1, operation: 'verify' })).jobs;
    assert.deepEqual([listed?.job_id, listed?.input_count, listed?.input_names], [jobId, 1, []]);
    await store.cancelJob(jobId);
    assert.equal((await store.findJob(jobId))?.resultsJson, '[{"input_index":0,"status":"cancelled"}]');
  });

  test('tells how many inputs of a job have ended in which way, and why the first failed', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const jobId = ids.next();
    const failed = (reason: string) => JSON.stringify({ status: 'failed', error_details: { reason } });
    const inputs = [
      ['succeeded', '{}'],
      ['failed', failed('SOURCE_EMPTY')],
      ['failed', failed('OUTPUT_TAKEN')],
      ['cancelled', '{}'],
    ].map(([status, result], index) => `('${jobId}', ${index}, '${status}', '{}', '${result}')`);
    await oldDatabase(
      folder,
      BEFORE_RETRIED_INPUTS,
      `insert into jobs (job_id, sync, status, queued_at, finished_at, cancelled_at, inputs_total, inputs_done, inputs_failed)
         values ('${jobId}', 0, 'failed', '2026-11-21T10:00:00.000Z', '2026-11-21T10:00:01.000Z', '2026-11-21T10:00:01.000Z', 4, 4, 3);
       insert into job_requests (job_id, operation, output, params) values ('${jobId}', 'verify', 'null', 'null');
       insert into inputs (job_id, input_index, status, input, result) values ${inputs.join()}`,
    );
    const store = await openSqlite(folder);
    t.after(() => store.close());
    const { counts, first_reason } = (await store.findJob(jobId)) ?? assert.fail();
    assert.deepEqual([counts, first_reason], [{ succeeded: 1, failed: 2, cancelled: 1 }, 'SOURCE_EMPTY']);
  });

  test('goes on with its inputs that wait, in the order that they had, and with those that ran', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const [batch, sync] = [ids.next(), ids.next()];
    const job = (jobId: string, isSync: number, status: string, inputs: number) =>
      `insert into jobs (job_id, sync, status, queued_at, inputs_total, caller)
         values ('${jobId}', ${isSync}, '${status}', '2026-11-21T10:00:00.000Z', ${inputs}, 'newsroom');
       insert into job_requests (job_id, operation, output, params) values ('${jobId}', 'verify', 'null', 'null');`;
    const input = (jobId: string, index: number, status: string) =>
      `insert into inputs (job_id, input_index, status, input, attempt)
         values ('${jobId}', ${index}, '${status}', '{}', ${status === 'queued' ? 0 : 1});`;
    const statuses = ['succeeded', 'running', 'reserved', 'queued', 'queued', 'queued', 'queued', 'queued'];
    const inputs = statuses.map((status, index) => input(batch, index, status)).join('');
    await oldDatabase(
      folder,
      BEFORE_PRIORITIES,
      `${job(batch, 0, 'running', 8)}${inputs}${job(sync, 1, 'queued', 1)}${input(sync, 0, 'queued')}
       update jobs set inputs_done = 1 where job_id = '${batch}'`,
    );
    const engine = await openSqliteEngine(folder, NO_LOG);
    t.after(() => engine.close());
    const { inputs: leases } = await engine.queue.lease({ ...ALL_JOBS, count: 100 });
    assert.deepEqual(
      leases.map(({ jobId, inputIndex, priority, attempt }) => [jobId, inputIndex, priority, attempt]),
      [
        [sync, 0, 100, 1],
        [batch, 1, -1, 2],
        [batch, 2, -1, 2],
        ...[3, 4, 5, 6].map((index) => [batch, index, -2, 1]),
        [batch, 7, -3, 1],
      ],
    );
    const finished = new Set<string>();
    for (const lease of leases) {
      const result = { lease, entry: cancelledEntry(lease.inputIndex), progress: NO_PROGRESS, digest: null };
      const { finishedJob } = await engine.queue.finish(result);
      if (finishedJob !== null) finished.add(finishedJob.jobId);
    }
    assert.deepEqual(finished, new Set([batch, sync]));
  });
});
