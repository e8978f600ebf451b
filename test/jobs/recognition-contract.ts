import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NO_PROGRESS, type Submission } from '#jobs/job.ts';
import { JobIds } from '#jobs/job-ids.ts';
import { cancelledEntry, failedEntry } from '#jobs/result-entries.ts';
import type { JobFilter, JobStore, LeasedInput } from '#jobs/store/job-store.ts';
import { pruneAllJobs } from '#jobs/store/maintenance.ts';
import { type DatabaseFor, finish, leased, storeOpener, succeed } from '../support/jobs/leases.ts';
import { resultsOf, scripts, shared } from '../support/jobs/test-jobs.ts';

const ids = new JobIds();

/** The contract of `JobStore` for what callers recognise and find jobs by. */
export function describeRecognition(engineName: string, databaseFor: DatabaseFor) {
  const openStore = storeOpener(databaseFor);
  /** For tests that look at their own jobs only. */
  const sharedStore = shared(openStore);

  async function submitted(store: JobStore, more: Partial<Submission> = {}, inputs = ['/media/a.mp4']) {
    const jobId = ids.next();
    await store.submitJob({ ...scripts(inputs), ...more, jobId, queuedAt: new Date() });
    return jobId;
  }

  describe(`recognising jobs on ${engineName}`, () => {
    test('a job and its place in the list have its operation, reference, labels and the names of its inputs', async (t) => {
      const store = await openStore(t);
      const labels = { project: 'evening-news', 'desk/4': '"quoted" = ä' };
      const jobId = await submitted(store, { operation: 'verify', clientReference: 'order-4711', labels });
      const { resultsJson: _, ...found } = (await store.findJob(jobId)) ?? assert.fail();
      assert.deepEqual(
        [found.operation, found.client_reference, found.labels, found.input_count, found.input_names],
        ['verify', 'order-4711', labels, 1, ['a.mp4']],
      );
      assert.deepEqual((await store.listJobs({ limit: 10 })).jobs, [found]);
    });

    test('a job that was given neither reference nor labels has none', async () => {
      const store = await sharedStore();
      const job = await store.findJob(await submitted(store));
      assert.deepEqual([job?.client_reference, job?.labels], [undefined, undefined]);
    });

    test('a large batch is shown with its first names, of which a list has three', async () => {
      const store = await sharedStore();
      const names = Array.from({ length: 120 }, (_, index) => `${index} ä ".mp4`);
      const jobId = await submitted(store, {}, names);
      const job = await store.findJob(jobId);
      assert.deepEqual([job?.input_count, job?.input_names], [120, names.slice(0, 100)]);
      const [listed] = (await store.listJobs({ limit: 1 })).jobs;
      assert.deepEqual([listed?.input_count, listed?.input_names], [120, names.slice(0, 3)]);
    });

    test('a job tells how many of its inputs have ended in which way, and why the first failed', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, {}, ['a', 'b', 'c', 'd', 'e', 'f']);
      const seen: unknown[] = [];
      const look = async () => {
        const { counts, first_reason } = (await store.findJob(jobId)) ?? assert.fail();
        const [listed] = (await store.listJobs({ limit: 1, jobIds: [jobId] })).jobs;
        assert.deepEqual([listed?.counts, listed?.first_reason], [counts, first_reason]);
        seen.push([counts.succeeded, counts.failed, counts.cancelled, first_reason]);
      };
      const [a, b, c, d] = await leased(store, jobId, 4);
      assert(a !== undefined && b !== undefined && c !== undefined && d !== undefined);
      await look();
      await succeed(store, b);
      await look();
      const failed = (reason: 'SOURCE_EMPTY' | 'JOB_NOT_ENDED', lease: LeasedInput) => ({
        lease,
        entry: failedEntry(lease.inputIndex, { reason, details: { name: 'c', jobId: 'a' }, location: {} }),
        progress: NO_PROGRESS,
        digest: null,
      });
      await store.finishInput(failed('SOURCE_EMPTY', c));
      await store.finishInput(failed('JOB_NOT_ENDED', a));
      await look();
      await store.cancelJob(jobId);
      await look();
      await finish(store, d, cancelledEntry(d.inputIndex));
      await look();
      assert.deepEqual(seen, [
        [0, 0, 0, undefined],
        [1, 0, 0, undefined],
        [1, 2, 0, 'SOURCE_EMPTY'],
        [1, 2, 2, 'SOURCE_EMPTY'],
        [1, 2, 3, 'SOURCE_EMPTY'],
      ]);
    });

    test('names hold no query of an address, before and after their job has finished', async () => {
      const store = await sharedStore();
      const inputs: Submission['request']['inputs'] = [
        { type: 'remote_file_url', url: 'https://example.com/films/interview.mp4?X-Signature=hush' },
        { type: 'remote_file_url', url: 's3://bucket/films/street.mp4?hush' },
        { type: 'remote_file_url', url: 's3://bucket/films/Take #2.mp4' },
        { type: 'remote_folder_url', url: 'https://example.com/news/master.m3u8?token=hush#hush' },
      ];
      const jobId = await submitted(store, { request: { inputs } });
      const expected = ['interview.mp4', 'street.mp4', 'Take #2.mp4', 'news'];
      assert.deepEqual((await store.findJob(jobId))?.input_names, expected);
      await store.cancelJob(jobId);
      const job = await store.findJob(jobId);
      assert.deepEqual(job?.input_names, expected);
      assert.deepEqual(
        resultsOf(job).map((entry) => entry.input_name),
        expected,
      );
    });

    test('every result has the name of its input, recorded or cancelled while it was queued', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, {}, ['/m/a.mp4', '/m/b.mp4']);
      const [lease] = await leased(store, jobId);
      assert(lease !== undefined);
      await succeed(store, lease);
      await store.cancelJob(jobId);
      assert.deepEqual(resultsOf(await store.findJob(jobId)), [
        { input_name: 'a.mp4', input_index: 0, status: 'succeeded', output_path: '/out' },
        { input_name: 'b.mp4', input_index: 1, status: 'cancelled' },
      ]);
    });

    test('lists are filtered by each of these, and by several together', async (t) => {
      const store = await openStore(t);
      const first = await submitted(store, { operation: 'verify', clientReference: 'r', labels: { a: '1', b: '2' } });
      const second = await submitted(store, { operation: 'verify', labels: { a: '1' }, caller: 'newsroom' });
      const third = await submitted(store, { clientReference: 'r', labels: { a: '2' }, caller: 'archive' });
      const listed = async (filter: Partial<JobFilter>) =>
        (await store.listJobs({ limit: 10, ...filter })).jobs.map((job) => job.job_id);
      const label = (name: string, value: string) => ({ label: { name, value } });
      for (const [filter, expected] of [
        [{ operation: 'verify' }, [second, first]],
        [{ operation: 'package' }, []],
        [{ clientReference: 'r' }, [third, first]],
        [{ clientReference: 'R' }, []],
        [label('a', '1'), [second, first]],
        [label('a', ''), []],
        [label('b', '1'), []],
        [{ submitter: 'archive' }, [third]],
        [{ ...label('a', '1'), clientReference: 'r', operation: 'verify', status: 'queued' }, [first]],
        [{ ...label('a', '1'), operation: 'c2pa-video' }, []],
        [{ operation: 'verify', before: second }, [first]],
        [{ ...label('a', '1'), before: second }, [first]],
        [{ caller: 'newsroom', submitter: 'archive' }, []],
        [{ caller: 'newsroom', ...label('a', '1') }, [second]],
      ] as const satisfies readonly (readonly [Partial<JobFilter>, readonly string[]])[]) {
        assert.deepEqual(await listed(filter), expected, JSON.stringify(filter));
      }
      const page = await store.listJobs({ limit: 1, operation: 'verify', ...label('a', '1') });
      assert.deepEqual([page.jobs[0]?.job_id, page.more], [second, true]);
    });

    test('recent jobs are those that were submitted or have finished since a time, and those that run', async (t) => {
      const store = await openStore(t);
      const submit = async (ageMs: number) => {
        const queuedAt = new Date(Date.now() - ageMs);
        const jobId = new JobIds().next(queuedAt.getTime());
        await store.submitJob({ ...scripts(['/media/a.mp4']), jobId, queuedAt });
        return jobId;
      };
      const [waiting, running, finished, recent] = [
        await submit(9e6),
        await submit(8e6),
        await submit(7e6),
        await submit(0),
      ];
      await leased(store, running);
      await store.cancelJob(finished);
      const recentIds = async (since: Date) => (await store.recentJobs(since, 10)).jobs.map((job) => job.job_id);
      assert.deepEqual(await recentIds(new Date(Date.now() - 60_000)), [recent, finished, running]);
      assert.deepEqual(await recentIds(new Date(Date.now() - 1e7)), [recent, finished, running, waiting]);
      assert.deepEqual(await recentIds(new Date(Date.now() + 60_000)), [running]);
      const page = await store.recentJobs(new Date(0), 2);
      assert.deepEqual([page.jobs.map((job) => job.job_id), page.more], [[recent, finished], true]);
      assert.deepEqual(await store.recentJobs(new Date(0), 4), await store.listJobs({ limit: 4 }));
    });

    test('the request of a job is found as it was sent, without the queries of its addresses', async () => {
      const store = await sharedStore();
      const jobId = ids.next();
      const url = 'https://example.com/a.mp4';
      const request = {
        inputs: [
          { type: 'remote_file_url' as const, url: `${url}?signature=secret` },
          { type: 'local_file_path' as const, path: '/media/b?.mp4' },
        ],
        output: { type: 'local' as const, prefix: 'news' },
        params: { parent: { type: 'file', source: { type: 'remote_file_url', url: `${url}#secret` } }, strict: false },
      };
      const submission = {
        operation: 'c2pa-video',
        request,
        sync: false,
        clientReference: '"1"',
        labels: { a: 'b' },
      } as const;
      await store.submitJob({ ...submission, caller: 'newsroom', jobId, queuedAt: new Date() });
      const found = await store.findRequest(jobId, { caller: 'newsroom' });
      assert.equal(found?.operation, 'c2pa-video');
      assert.deepEqual(JSON.parse(found.bodyJson), {
        inputs: [{ type: 'remote_file_url', url }, request.inputs[1]],
        output: request.output,
        params: { parent: { type: 'file', source: { type: 'remote_file_url', url } }, strict: false },
        client_reference: '"1"',
        labels: { a: 'b' },
      });
      assert.equal(await store.findRequest(jobId, { caller: 'archive' }), null);
      assert.equal(await store.findRequest(ids.next()), null);
      const bare = await store.findRequest(await submitted(store));
      assert.deepEqual(JSON.parse(bare?.bodyJson ?? ''), {
        inputs: [{ type: 'local_file_path', path: '/media/a.mp4' }],
      });
    });

    test('labels are deleted with their job', async () => {
      const store = await sharedStore();
      const jobId = await submitted(store, { labels: { a: '1' } });
      await store.cancelJob(jobId);
      await pruneAllJobs(store, new Date(Date.now() + 1));
      assert.equal(await store.findJob(jobId), null);
      assert.deepEqual((await store.listJobs({ limit: 1, label: { name: 'a', value: '1' } })).jobs, []);
    });
  });
}
