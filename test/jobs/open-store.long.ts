import assert from 'node:assert/strict';
import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  chown,
  copyFile,
  cp,
  mkdir,
  open,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { JobIds } from '#jobs/job-ids.ts';
import type { JobStore } from '#jobs/store/job-store.ts';
import { migrations } from '#jobs/store/migrations.ts';
import { openSqlite } from '#jobs/store/sqlite/sqlite-job-store.ts';
import { Launcher } from '#processes/launcher.ts';
import { configFor, ended, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { fillDisk, openSmallDisk } from '../support/small-disk.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';
import { startTestService } from './start-test-service.ts';

const DATABASE = 'jobs.sqlite';
const WITHOUT_OVERRIDE = ['setpriv', '--bounding-set=-dac_override,-dac_read_search', process.execPath];
const ids = new JobIds();

async function openStore(folder: string): Promise<JobStore> {
  return openSqlite(folder);
}

async function submit(store: JobStore, inputs: readonly string[]): Promise<string> {
  const jobId = ids.next();
  await store.submitJob({ ...scripts(inputs), jobId, queuedAt: new Date() });
  return jobId;
}

/** A folder with a database that has had a job and was closed. */
async function usedFolder(): Promise<string> {
  const folder = join(temporaryFolder(), 'data');
  const store = await openStore(folder);
  await submit(
    store,
    Array.from({ length: 2000 }, () => 'an input'),
  );
  await store.close();
  return folder;
}

async function refusedFor(reason: Reason, folder: string): Promise<AppError> {
  const refusal = await openStore(folder).then(
    (store) => store.close(),
    (error: unknown) => error,
  );
  assert(refusal instanceof AppError, `expected ${reason}, not ${String(refusal)}`);
  assert.equal(refusal.reason, reason);
  return refusal;
}

describe('opening the job store', () => {
  test('makes a folder and files that no other user can read', async (t) => {
    const folder = await usedFolder();
    const store = await openStore(folder);
    t.after(() => store.close());
    await submit(store, ['a']);
    const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
    assert.equal(await modeOf(folder), '700');
    for (const name of [DATABASE, `${DATABASE}-wal`, 'service.pid'])
      assert.equal(await modeOf(join(folder, name)), '600', name);
  });

  test('keeps nothing of what was erased: the file holds no query of a presigned URL', async () => {
    const folder = join(temporaryFolder(), 'data');
    const store = await openStore(folder);
    const inputs = Array.from({ length: 500 }, (_, index) => ({
      type: 'remote_file_url' as const,
      url: `https://example.com/${index}.mp4?signature=hush${'-'.repeat(index % 90)}`,
    }));
    const jobId = ids.next();
    await store.submitJob({ ...scripts([]), request: { inputs }, jobId, queuedAt: new Date() });
    await store.close();
    assert.ok((await readFile(join(folder, DATABASE))).includes('hush'));
    const reopened = await openStore(folder);
    await reopened.cancelJob(jobId);
    await reopened.close();
    assert.ok(!(await readFile(join(folder, DATABASE))).includes('hush'));
  });

  test('keeps nothing of what was erased from a large request, nor in its log for long while it is open', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const store = await openStore(folder);
    t.after(() => store.close());
    const source = {
      type: 'remote_file_url' as const,
      url: `https://example.com/a.mp4?signature=${'hush'.repeat(3000)}`,
    };
    const parent = { type: 'file' as const, source };
    const jobId = ids.next();
    const request = { inputs: [source], params: { parent } };
    await store.submitJob({ ...scripts([]), request, jobId, queuedAt: new Date() });
    const written = async () => {
      const files = [DATABASE, `${DATABASE}-wal`].map((name) => readFile(join(folder, name)));
      return Buffer.concat(await Promise.all(files)).includes('hush');
    };
    assert.ok(await written());
    await store.cancelJob(jobId);
    await until(async () => !(await written()));
  });

  test('leaves the permissions of a folder alone that holds other things', async () => {
    const folder = temporaryFolder();
    await chmod(folder, 0o755);
    await writeFile(join(folder, 'something else'), '');
    await (await openStore(folder)).close();
    assert.equal((await stat(folder)).mode & 0o777, 0o755);
  });

  test('is refused while another process has the folder, and names that process', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const service = await startTestService(t, folder);
    const { details } = (await refusedFor('STORE_IN_USE', folder)) as AppError<'STORE_IN_USE'>;
    assert.deepEqual(details, { folder, pid: service.pid });
    await service.kill();
    await (await openStore(folder)).close();
  });

  test('is refused a second time in one process, and does not harm the first', async (t) => {
    const folder = join(temporaryFolder(), 'data');
    const store = await openStore(folder);
    t.after(() => store.close());
    await refusedFor('STORE_IN_USE', folder);
    await refusedFor('STORE_IN_USE', folder);
    await submit(store, ['a']);
  });

  test('is refused for a database of a newer release', async () => {
    const folder = await usedFolder();
    const database = new DatabaseSync(join(folder, DATABASE));
    database.exec("insert into schema_versions values (999, '2030-01-01T00:00:00.000Z', 999)");
    database.close();
    const { details } = (await refusedFor('STORE_NEWER', folder)) as AppError<'STORE_NEWER'>;
    assert.equal(details.version, 999);
  });

  test('is refused for a file that is no database', async () => {
    const folder = await usedFolder();
    await writeFile(
      join(folder, DATABASE),
      'This is not a database, and it is long enough to be read as a header.'.repeat(20),
    );
    await refusedFor('STORE_CORRUPT', folder);
  });

  test('is refused for a database that was cut off', async () => {
    const folder = await usedFolder();
    await truncate(join(folder, DATABASE), 8192);
    await refusedFor('STORE_CORRUPT', folder);
  });

  test('is refused for a database whose middle was overwritten', async () => {
    const folder = await usedFolder();
    const file = await open(join(folder, DATABASE), 'r+');
    const { size } = await file.stat();
    for (let offset = 4096; offset < size; offset += 4096) await file.write(Buffer.alloc(4096, 0xa5), 0, 4096, offset);
    await file.close();
    await refusedFor('STORE_CORRUPT', folder);
  });

  test('is refused where the folder cannot be made', async () => {
    const folder = temporaryFolder();
    await writeFile(join(folder, 'file'), '');
    await refusedFor('STORE_FOLDER_UNUSABLE', join(folder, 'file', 'data'));
    await refusedFor('STORE_FOLDER_UNUSABLE', join(folder, 'file'));
  });

  test('is refused where the folder may not be written', async () => {
    const folder = temporaryFolder();
    await chmod(folder, 0o755);
    const locked = join(folder, 'locked');
    await mkdir(locked, { mode: 0o555 });
    await chmod(locked, 0o555);
    await withoutPrivileges(() => refusedFor('STORE_FOLDER_UNUSABLE', locked));
  });

  test('is refused for a database that may only be read', async () => {
    const outer = temporaryFolder();
    await chmod(outer, 0o755);
    const folder = join(outer, 'data');
    await mkdir(folder);
    await copyFile(join(await usedFolder(), DATABASE), join(folder, DATABASE));
    await writeFile(join(folder, 'something else'), '');
    await chmod(join(folder, DATABASE), 0o444);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) await chown(join(folder, DATABASE), 65534, 65534);
    // As root without the rights to pass over permissions, which still reads a checkout in a private folder.
    const [program, ...words] = isRoot ? WITHOUT_OVERRIDE : [process.execPath];
    const script = fileURLToPath(import.meta.resolve('./open-store-reason.ts'));
    const { stdout } = await promisify(execFile)(program as string, [...words, script, folder]);
    assert.equal(stdout.trim(), 'STORE_UNREADABLE');
  });

  test('is refused on a full disk', async (t) => {
    const disk = await openSmallDisk(1024 * 1024);
    t.after(() => disk.cleanUp());
    await fillDisk(disk.path);
    await refusedFor('STORE_DISK_FULL', join(disk.path));
  });

  test('leaves no worker behind where its tables cannot be read', async (t) => {
    const folder = await usedFolder();
    const database = new DatabaseSync(join(folder, DATABASE));
    database.exec('drop table inputs');
    database.close();
    const launched: ChildProcess[] = [];
    class WatchedLauncher extends Launcher {
      override launch(...args: Parameters<Launcher['launch']>): ChildProcess {
        const child = super.launch(...args);
        launched.push(child);
        return child;
      }
    }
    await assert.rejects(startedJobs(t, { config: configFor(folder), launcher: new WatchedLauncher() }));
    const running = launched.filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null);
    for (const child of running) child.kill('SIGKILL');
    assert.equal(running.length, 0);
  });

  test('takes the changes of its tables once', async (t) => {
    const folder = await usedFolder();
    await (await openStore(folder)).close();
    const database = new DatabaseSync(join(folder, DATABASE));
    t.after(() => database.close());
    assert.equal(database.prepare('select count(*) as count from schema_versions').get()?.['count'], migrations.length);
  });
});

describe('a thread of the store that exits', () => {
  test('is reported, because only a new start opens the store again', async (t) => {
    const thread = once(process, 'worker');
    const lost = Promise.withResolvers<AppError>();
    const config = configFor(temporaryFolder());
    const jobs = await startedJobs(t, { config, storeLost: lost.resolve });
    const [sqlite] = (await thread) as [Worker];
    await sqlite.terminate();
    assert.equal((await lost.promise).reason, 'STORE_LOST');
    assert.equal(await jobs.healthy(), false);
  });

  for (const [how, replace] of [
    ['removed', (folder: string) => rm(folder, { recursive: true })],
    ['renamed', (folder: string) => rename(folder, `${folder}-old`)],
    [
      'replaced',
      (folder: string) => rename(folder, `${folder}-old`).then(() => cp(`${folder}-old`, folder, { recursive: true })),
    ],
  ] as const) {
    test(`exits where its folder was ${how}: nothing is accepted that a new start would not find`, async (t) => {
      const folder = join(temporaryFolder(), 'data');
      const lost = Promise.withResolvers<AppError>();
      const store = await openSqlite(folder, lost.resolve);
      t.after(() => store.close());
      await submit(store, ['x']);
      await replace(folder);
      await assert.rejects(submit(store, ['x']), { reason: 'STORE_LOST' });
      assert.equal((await lost.promise).reason, 'STORE_LOST');
    });
  }

  test('is not reported after the store was closed', async (t) => {
    const reports: AppError[] = [];
    const config = configFor(temporaryFolder());
    const jobs = await startedJobs(t, { config, storeLost: (error) => reports.push(error) });
    await jobs.stop(0);
    assert.deepEqual(reports, []);
  });
});

describe('a disk that fills up', () => {
  test('refuses submissions with a clear error, keeps what was accepted, and goes on when there is room', async (t) => {
    const disk = await openSmallDisk(2 * 1024 * 1024);
    t.after(() => disk.cleanUp());
    const folder = join(disk.path, 'data');
    const store = await openStore(folder);
    const accepted = [await submit(store, ['first'])];
    const filler = await fillDisk(disk.path);
    const refusal = await submitUntilRefused(store, accepted);
    assert.equal(refusal.reason, 'STORE_DISK_FULL');
    await store.countQueued();

    await truncate(filler, 0);
    accepted.push(await submit(store, ['last']));
    await store.close();
    const again = await openStore(folder);
    t.after(() => again.close());
    for (const jobId of accepted) assert.notEqual(await again.findJob(jobId), null);
    assert.equal((await again.queueState()).queued, accepted.length);
    assert.match(await readFile(join(folder, 'service.pid'), 'utf8'), /^\d+\n$/);
  });

  test('costs no result: it is recorded when there is room again', async (t) => {
    const disk = await openSmallDisk(2 * 1024 * 1024);
    t.after(() => disk.cleanUp());
    const gate = join(temporaryFolder(), 'gate');
    const jobs = await startedJobs(t, { config: configFor(join(disk.path, 'data')) });
    const { job_id: jobId } = await jobs.submit(scripts([`wait-for ${gate}`, `wait-for ${gate}`]));
    await until(async () => (await jobs.find(jobId))?.status === 'running');
    const filler = await fillDisk(disk.path);
    for (let refused = false; !refused; ) {
      refused = await jobs.submit(scripts(['x'.repeat(10_000)])).then(
        () => false,
        () => true,
      );
    }
    await writeFile(gate, '');
    await until(async () => !(await jobs.healthy()));
    assert.equal((await jobs.find(jobId))?.status, 'running');
    await truncate(filler, 0);
    assert.equal((await ended(jobs, jobId)).status, 'succeeded');
    await until(() => jobs.healthy());
  });

  test('shows in the health of a service that has nothing to write, and no more when there is room', async (t) => {
    const disk = await openSmallDisk(2 * 1024 * 1024);
    t.after(() => disk.cleanUp());
    const jobs = await startedJobs(t, { config: configFor(join(disk.path, 'data')) });
    assert.equal(await jobs.healthy(), true);
    const filler = await fillDisk(disk.path);
    await until(async () => !(await jobs.healthy()));
    assert.equal((await jobs.readiness()).ready, false);
    await truncate(filler, 0);
    await until(() => jobs.healthy());
  });
});

async function submitUntilRefused(store: JobStore, accepted: string[]): Promise<AppError> {
  for (let count = 0; count < 1000; count += 1) {
    try {
      accepted.push(await submit(store, ['x'.repeat(10_000)]));
    } catch (error) {
      assert(error instanceof AppError);
      return error;
    }
  }
  throw new Error('the disk does not get full');
}
