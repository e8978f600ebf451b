import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { configSchema } from '#config/config-schema.ts';
import { MAX_RETRY_JOBS, type RetryJobsResponse, retryJobsResponse } from '#contract/retry-request.ts';
import { AppError } from '#errors/app-error.ts';
import { ENDED } from '../support/jobs/retried-job.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { errorOf, serve } from '../support/servers/serve.ts';
import { type JobServer, serveJobs } from './serve-jobs.ts';

function post({ base }: { base: string }, body?: object, headers: Record<string, string> = {}): Promise<Response> {
  if (body === undefined) return fetch(`${base}/v2/jobs/retry`, { method: 'POST', headers });
  const json = { 'content-type': 'application/json', ...headers };
  return fetch(`${base}/v2/jobs/retry`, { method: 'POST', headers: json, body: JSON.stringify(body) });
}

async function retried(reply: Response): Promise<RetryJobsResponse> {
  assert.equal(reply.status, 202, await reply.clone().text());
  return retryJobsResponse.parse(await reply.json());
}

const NOTHING = { jobs: [], left_out: 0, more: false };

/** Submits scripts, and returns the identifier of the job when it has ended. */
async function ended(server: JobServer, ...scripts: string[]): Promise<string> {
  const id = await server.submit(...scripts);
  await server.ended(id);
  return id;
}

/** Waits for the millisecond after the end of jobs, and returns it: jobs that are submitted then end later. */
async function timeAfter(server: JobServer, ...ids: string[]): Promise<string> {
  const ends = ids.map(async (id) => Date.parse((await server.lookUp(id)).timing.finished_at ?? assert.fail()));
  const at = Math.max(...(await Promise.all(ends))) + 1;
  await until(() => Date.now() > at);
  return new Date(at).toISOString();
}

describe('POST /v2/jobs/retry', () => {
  test('makes a job of the failed inputs of each job, once however often it is sent', async (t) => {
    const server = await serveJobs(t);
    assert.deepEqual(await retried(await post(server)), NOTHING);
    const first = await ended(server, 'fail /a', 'progress 1', 'fail /b');
    const second = await ended(server, 'fail /c');
    await ended(server, 'progress 1');
    const body = { until: await timeAfter(server, second) };
    const { jobs, ...rest } = await retried(await post(server, body));
    assert.deepEqual(rest, { left_out: 0, more: false });
    const made = await Promise.all(jobs.map((id) => server.ended(id)));
    assert.deepEqual(
      made.map(({ retried_from, input_count }) => [retried_from, input_count]),
      [
        [first, 2],
        [second, 1],
      ],
    );
    assert.deepEqual(await retried(await post(server, body)), { jobs: [], left_out: 3, more: false });
    const again = await retried(await post(server));
    const retries = await Promise.all(again.jobs.map((id) => server.ended(id)));
    assert.deepEqual(
      retries.map(({ retried_from }) => retried_from),
      jobs,
      'the retries failed as well',
    );
    assert.equal(again.left_out, 3);
  });

  test('makes each job once where it is sent several times at once', async (t) => {
    const server = await serveJobs(t);
    const ids = await Promise.all([1, 2, 3].map(() => ended(server, 'fail /a', 'fail /b')));
    const body = { until: await timeAfter(server, ...ids) };
    const answers = await Promise.all(Array.from({ length: 4 }, async () => retried(await post(server, body))));
    const jobs = await Promise.all(answers.flatMap((answer) => answer.jobs).map((id) => server.ended(id)));
    assert.deepEqual(jobs.map(({ retried_from }) => retried_from).sort(), ids.sort());
  });

  test('leaves out inputs that a retry of their job has', async (t) => {
    const server = await serveJobs(t);
    const id = await ended(server, 'fail /a', 'fail /b', 'fail /c');
    const body = { until: await timeAfter(server, id) };
    const choice = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"input_indexes":[1]}' };
    const reply = await fetch(`${server.base}/v2/jobs/${id}/retry`, choice);
    await server.ended(((await reply.json()) as { job_id: string }).job_id);
    const { jobs, left_out } = await retried(await post(server, body));
    const [retry] = await Promise.all(jobs.map((job) => server.ended(job)));
    assert.deepEqual([retry?.input_count, left_out], [2, 1]);
  });

  test('takes the inputs of a reason, an operation and a time alone', async (t) => {
    const server = await serveJobs(t);
    const video = await ended(server, 'fail /a', 'claim /out/0', 'claim /out/0');
    const since = await timeAfter(server, video);
    const verify = await server.post('/v2/verify', ['fail /b']);
    const { job_id: later } = (await verify.json()) as { job_id: string };
    await server.ended(later);
    const end = await timeAfter(server, later);
    const sources = async (body: object) => {
      const { jobs } = await retried(await post(server, { until: end, ...body }));
      const made = await Promise.all(jobs.map((id) => server.ended(id)));
      return made.map(({ retried_from, input_count }) => [retried_from, input_count]);
    };
    assert.deepEqual(await sources({ operation: 'package' }), []);
    assert.deepEqual(await sources({ since: end }), []);
    assert.deepEqual(await sources({ reasons: ['OUTPUT_TAKEN'] }), [[video, 1]]);
    assert.deepEqual(await sources({ since }), [[later, 1]]);
    assert.deepEqual(await sources({ operation: 'c2pa-video', reasons: ['SOURCE_NOT_FOUND'] }), [[video, 1]]);
  });

  test('leaves out inputs whose presigned queries were erased, and cancelled ones', async (t) => {
    const server = await serveJobs(t);
    const url = 'https://example.invalid/a.mp4?X-Signature=hush';
    const inputs = [
      { type: 'remote_file_url', url },
      { type: 'local_file_path', path: 'fail /x' },
    ];
    for (const some of [inputs, inputs.slice(0, 1)]) {
      const reply = await server.post('/v2/c2pa/video', [], { body: { inputs: some } });
      await server.ended(((await reply.json()) as { job_id: string }).job_id);
    }
    const cancelled = await server.submit('sleep for-ever');
    await server.jobs.cancel(cancelled);
    await server.ended(cancelled);
    const { jobs, left_out } = await retried(await post(server));
    const made = await Promise.all(jobs.map((id) => server.ended(id)));
    assert.deepEqual([made.map(({ input_count }) => input_count), left_out], [[1], 2]);
  });

  test('leaves out jobs that the configuration as it is now refuses', async (t) => {
    const server = await serveJobs(t);
    const ids = [await ended(server, 'fail /a', 'fail /b'), await ended(server, 'fail /c')];
    Object.assign(server.config.worker, { max_inputs_per_job: 1 });
    const { jobs, left_out } = await retried(await post(server));
    const [retry] = await Promise.all(jobs.map((id) => server.ended(id)));
    assert.deepEqual([jobs.length, retry?.retried_from, left_out], [1, ids[1], 2]);
  });

  test('refuses what it does not know', async (t) => {
    const server = await serveJobs(t);
    const typo = { reasons: ['S3_UNREACHABEL'] };
    for (const body of [typo, { statuses: ['failed'] }, { since: 'yesterday' }, { operation: 'sign' }, []]) {
      const { status, code } = await errorOf(await post(server, body));
      assert.deepEqual([status, code], [400, 'VALIDATION_FAILED'], JSON.stringify(body));
    }
  });
});

describe('callers', () => {
  const TOKENS = { newsroom: 'newsroom-token', archive: 'archive-token', operations: 'admin-token' };
  const tokens = Object.entries(TOKENS).map(([name, token]) => ({ name, token, admin: name === 'operations' }));
  const { auth } = configSchema.parse({ auth: { tokens } });
  const as = (name: keyof typeof TOKENS) => ({ authorization: `Bearer ${TOKENS[name]}` });

  test('retry their own jobs; an admin retries those of all, each under its caller', async (t) => {
    const server = await serveJobs(t, { config: (config) => ({ ...config, auth }) });
    const failed = async (name: keyof typeof TOKENS) => {
      const reply = await server.post('/v2/c2pa/video', ['fail /x'], { headers: as(name) });
      const { job_id: id } = (await reply.json()) as { job_id: string };
      await server.jobs.whenFinished(id, 600_000, new AbortController().signal);
      return id;
    };
    const ids = [await failed('newsroom'), await failed('archive')];
    const own = await retried(await post(server, {}, as('newsroom')));
    const all = await retried(await post(server, {}, as('operations')));
    const callers = [...own.jobs, ...all.jobs].map(async (id) => {
      const { caller, retried_from } = (await server.jobs.find(id)) ?? assert.fail();
      return [caller, retried_from];
    });
    const found = await Promise.all(callers);
    assert.deepEqual(found.slice(0, 1), [['newsroom', ids[0]]]);
    assert.deepEqual(
      found.filter(([, from]) => from === ids[1]),
      [['archive', ids[1]]],
    );
    assert.equal((await post(server)).status, 401);
  });
});

describe('the bounds of a request', () => {
  /** A server with failed jobs, all of which can be retried. */
  async function serveFailed(count: number) {
    const server = await serve();
    const all = Array.from({ length: count }, (_, index) => String(index).padStart(5, '0'));
    server.jobs.record = {
      ...server.jobs.record,
      findFailedJobs: async (_filter, limit, after = '') => all.filter((id) => id > after).slice(0, limit),
      findRetriedJob: async () => ENDED,
    };
    return server;
  }

  for (const [count, more] of [
    [MAX_RETRY_JOBS, false],
    [MAX_RETRY_JOBS + 1, true],
  ] as const) {
    test(`are ${MAX_RETRY_JOBS} jobs: of ${count} ${more ? 'there are more' : 'there are no more'}`, async () => {
      await using server = await serveFailed(count);
      const answer = await retried(await post(server));
      assert.deepEqual([answer.jobs.length, answer.more], [MAX_RETRY_JOBS, more]);
      assert.equal(server.jobs.submissions, MAX_RETRY_JOBS);
    });
  }

  test('are those of the queue: a full one ends the request with what was made, or refuses it', async (t) => {
    await using server = await serveFailed(10);
    const submit = server.jobs.submit.bind(server.jobs);
    t.mock.method(server.jobs, 'submit', async (submission: Parameters<typeof submit>[0]) => {
      if (server.jobs.submissions === 3)
        server.jobs.refusal = new AppError('QUEUE_FULL', { waiting: 3, asked: 1, limit: 3 });
      return await submit(submission);
    });
    const { jobs, more } = await retried(await post(server));
    assert.deepEqual([jobs.length, more], [3, true]);
    const { status, code } = await errorOf(await post(server));
    assert.deepEqual([status, code], [503, 'SERVICE_OVERLOADED']);
  });
});
