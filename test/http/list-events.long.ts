import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configSchema } from '#config/config-schema.ts';
import { jobRequestResponse } from '#contract/job.ts';
import { type ListedJob, listedJob } from '#contract/job-list.ts';
import { ListFeed } from '#jobs/following/job-feeds.ts';
import type { ListEvent } from '#jobs/job.ts';
import type { JobStore } from '#jobs/store/job-store.ts';
import { type JobServer, serveJobs, sharedJobServer } from './serve-jobs.ts';
import { readRawEvents } from './sse-reader.ts';

const { auth } = configSchema.parse({
  auth: {
    tokens: [
      { name: 'newsroom', token: 'newsroom-token' },
      { name: 'archive', token: 'archive-token' },
      { name: 'operations', token: 'admin-token', admin: true },
    ],
  },
});

const sharedServer = sharedJobServer();

/** Follows the list, and returns the jobs that the stream tells of. */
async function follow(server: JobServer, token = ''): Promise<AsyncGenerator<ListedJob, void, void>> {
  const reply = await fetch(`${server.base}/v2/events`, { headers: { authorization: `Bearer ${token}` } });
  assert.deepEqual([reply.status, reply.headers.get('x-accel-buffering')], [200, 'no']);
  return jobsIn(reply);
}

async function* jobsIn(reply: Response): AsyncGenerator<ListedJob, void, void> {
  for await (const { type, data } of readRawEvents(reply)) {
    assert.equal(type, 'jobs');
    for (const job of JSON.parse(data).jobs) yield listedJob.parse(job);
  }
}

/** Reads events until a job was told in every one of the states. */
async function statesOf(jobs: AsyncGenerator<ListedJob>, id: string, last: string): Promise<string[]> {
  const states: string[] = [];
  for await (const job of jobs) {
    if (job.job_id === id) states.push(job.status);
    if (states.at(-1) === last) break;
  }
  return states;
}

describe('GET /v2/events', () => {
  test('tells of jobs as they are submitted and end, as the list has them', async () => {
    const server = await sharedServer();
    const [all, jobs] = [await follow(server), await follow(server)];
    const id = await server.submit('sleep for-ever');
    const states = statesOf(all, id, 'failed');
    for await (const job of jobs) if (job.job_id === id && job.status === 'running') break;
    await server.jobs.cancel(id);
    assert.deepEqual((await states).slice(-2), ['running', 'failed']);
  });

  test('tells callers of their own jobs, and an admin of all', async (t) => {
    const server = await serveJobs(t, { config: (config) => ({ ...config, auth }) });
    const submit = async (token: string) => {
      const reply = await server.post('/v2/c2pa/video', ['progress 1'], {
        headers: { authorization: `Bearer ${token}` },
      });
      return ((await reply.json()) as { job_id: string }).job_id;
    };
    const newsroom = await follow(server, 'newsroom-token');
    const archive = await follow(server, 'archive-token');
    const admin = await follow(server, 'admin-token');
    const [ofNewsroom, ofArchive] = [await submit('newsroom-token'), await submit('archive-token')];
    for (const [jobs, id] of [
      [newsroom, ofNewsroom],
      [archive, ofArchive],
    ] as const) {
      for await (const job of jobs) {
        assert.equal(job.job_id, id);
        if (job.status === 'succeeded') break;
      }
    }
    const seen = new Set<string>();
    for await (const job of admin) if (seen.add(job.job_id).size === 2) break;
    assert.deepEqual(seen, new Set([ofNewsroom, ofArchive]));
  });

  test('ends when the service stops', async (t) => {
    const server = await serveJobs(t);
    const reply = await fetch(`${server.base}/v2/events`);
    await server.app.close();
    await reply.text();
  });
});

describe('GET /v2/jobs/{id}/request', () => {
  test('answers with the route and the body that the job was made from', async () => {
    const server = await sharedServer();
    const body = { params: { assertions: [{ label: 'com.example.a', data: { b: 1 } }] }, client_reference: '4711' };
    const { job_id: id } = (await (await server.post('/v2/sync/c2pa/video', ['progress 1'], { body })).json()) as {
      job_id: string;
    };
    const reply = await fetch(`${server.base}/v2/jobs/${id}/request`);
    assert.deepEqual(jobRequestResponse.parse(await reply.json()), {
      method: 'POST',
      path: '/v2/c2pa/video',
      body: { inputs: [{ type: 'local_file_path', path: 'progress 1' }], ...body },
    });
    assert.equal((await fetch(`${server.base}/v2/jobs/none/request`)).status, 404);
  });

  test('answers 404 to another caller', async (t) => {
    const server = await serveJobs(t, { config: (config) => ({ ...config, auth }) });
    const reply = await server.post('/v2/c2pa/video', ['progress 1'], {
      headers: { authorization: 'Bearer newsroom-token' },
    });
    const { job_id: id } = (await reply.json()) as { job_id: string };
    const look = (token: string) =>
      fetch(`${server.base}/v2/jobs/${id}/request`, { headers: { authorization: `Bearer ${token}` } });
    assert.deepEqual([(await look('archive-token')).status, (await look('admin-token')).status], [404, 200]);
  });
});

describe('a feed of the list', () => {
  const job = (id: string, status: ListedJob['status'] = 'queued'): ListedJob => ({
    ...{ job_id: id, status, operation: 'verify', input_count: 1, input_names: [] },
    counts: { succeeded: 0, failed: 0, cancelled: 0 },
    timing: { queued_at: '2026-11-23T10:00:00.000Z' },
  });
  /** Follows a feed whose polls see one list after the other, and then the last one. */
  function feedOf(polls: readonly (ListedJob[] | Error)[], { more = false } = {}) {
    let next = 0;
    const done = Promise.withResolvers<void>();
    const recentJobs: JobStore['recentJobs'] = async () => {
      const jobs = polls[Math.min(next, polls.length - 1)];
      next += 1;
      if (next > polls.length) done.resolve();
      if (jobs instanceof Error || jobs === undefined) throw jobs;
      return { jobs, more };
    };
    const feed = new ListFeed(recentJobs, 1);
    const gone = new AbortController();
    return { events: feed.follow({}, gone.signal), seenAll: done.promise, gone, polls: () => next };
  }
  const told = async (events: AsyncGenerator<ListEvent>) => {
    const { value } = await events.next();
    return value?.type === 'jobs' ? value.jobs.map(({ job_id: id, status }: ListedJob) => [id, status]) : value?.type;
  };

  test('tells a slow follower of each job once, as it is now', async () => {
    const { events, seenAll } = feedOf([[job('a')], [job('b'), job('a')], [job('b'), job('a', 'running')]]);
    const first = told(events);
    assert.deepEqual(await first, [['a', 'queued']]);
    await seenAll;
    assert.deepEqual(await told(events), [
      ['b', 'queued'],
      ['a', 'running'],
    ]);
    await events.return();
  });

  test('says that there is too much to tell', async () => {
    const { events } = feedOf([[job('a')]], { more: true });
    assert.equal(await told(events), 'reload');
    await events.return();
  });

  test('goes on after the store could not be reached', async () => {
    const { events } = feedOf([new Error('the store is gone'), [job('a')]]);
    assert.deepEqual(await told(events), [['a', 'queued']]);
    await events.return();
  });

  test('asks the store for nothing once nobody follows', async () => {
    const { events, gone, polls, seenAll } = feedOf([[job('a')]]);
    await told(events);
    await seenAll;
    const end = events.next();
    gone.abort();
    assert.equal((await end).done, true);
    const before = polls();
    const { events: others, seenAll: othersSeen } = feedOf([[job('a')]]);
    const other = others.next();
    await othersSeen;
    assert.equal(polls(), before);
    await other;
    await others.return();
  });
});
