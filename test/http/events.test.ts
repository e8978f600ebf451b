import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { jobListResponse } from '#contract/job-list.ts';
import { type EventClient, eventStream } from '#http/routes/event-routes.ts';
import { JobFeed } from '#jobs/following/job-feeds.ts';
import type { JobEvent, JobSnapshot } from '#jobs/job.ts';
import { cancelledEntry } from '#jobs/result-entries.ts';
import { ended, resultsOf, scripts, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { errorOf, serve } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { serveJobs, sharedJobServer } from './serve-jobs.ts';
import { allEvents, readEvents } from './sse-reader.ts';

const NEVER = new AbortController().signal;

const timing = { queued_at: '2026-11-21T10:00:00.000Z' };

/** A job that has ended. */
const JOB: JobSnapshot = {
  job_id: 'a',
  status: 'succeeded',
  operation: 'verify',
  input_count: 1,
  input_names: ['a.mp4'],
  counts: { succeeded: 1, failed: 0, cancelled: 0 },
  resultsJson: '[]',
  timing: { ...timing, finished_at: timing.queued_at },
};

const DONE: JobEvent = { type: 'done', job: JOB };

const EVENT_BYTES = 64 * 1024;

/** Events of some size without end. */
async function* endlessEvents(made: () => void, closed: () => void): AsyncGenerator<JobEvent, void, void> {
  const job = { ...DONE.job, job_id: 'x'.repeat(EVENT_BYTES) };
  try {
    for (;;) {
      made();
      yield { type: 'progress', job };
    }
  } finally {
    closed();
  }
}

/** One step of progress, and then nothing until the signal is aborted. */
async function* untilGone(signal: AbortSignal, closed: () => void): AsyncGenerator<JobEvent, void, void> {
  try {
    yield { ...DONE, type: 'progress' };
    await once(signal, 'abort');
  } finally {
    closed();
  }
}

const sharedServer = sharedJobServer();

describe('GET /v2/jobs/{id}/events', () => {
  test('tells every input and the end of a job, and then ends', async () => {
    const folder = temporaryFolder();
    const server = await sharedServer();
    const go = join(folder, 'go');
    const id = await server.submit(`wait-for ${go}; progress 5`, 'fail /x', 'progress 1');
    const reply = await fetch(`${server.base}/v2/jobs/${id}/events`);
    assert.match(reply.headers.get('content-type') ?? '', /^text\/event-stream/);
    const events = readEvents(reply);
    const first = await events.next();
    assert.ok(!first.done && first.value.job.job_id === id);
    await writeFile(go, '');
    const seen = [first.value];
    for await (const event of events) seen.push(event);
    const told = seen.filter(({ type }) => type === 'input').flatMap(({ job }) => job.results);
    assert.deepEqual(told.map((entry) => entry.input_index).sort(), [0, 1, 2]);
    assert.deepEqual(
      seen.map(({ type }) => type).filter((type) => type === 'done'),
      ['done'],
    );
    const last = seen.at(-1);
    assert.equal(last?.type, 'done');
    assert.deepEqual(last?.job, await server.lookUp(id));
    const ended = { counts: { succeeded: 2, failed: 1, cancelled: 0 }, first_reason: 'SOURCE_NOT_FOUND' };
    assert.partialDeepStrictEqual(last?.job, ended);
    const { jobs } = jobListResponse.parse(await (await fetch(`${server.base}/v2/jobs`)).json());
    assert.partialDeepStrictEqual(
      jobs.find((job) => job.job_id === id),
      ended,
    );
    assert.ok(seen.some(({ type, job }) => type === 'input' && job.counts.succeeded + job.counts.failed > 0));
    for (const { type, job } of seen) if (type === 'progress') assert.deepEqual(job.results, []);
  });

  test('tells of a job that ended before in one event', async () => {
    const server = await sharedServer();
    const id = await server.submit('progress 1', 'fail /x');
    const job = await server.ended(id);
    const events = await allEvents(await fetch(`${server.base}/v2/jobs/${id}/events`));
    assert.deepEqual(events, [{ type: 'done', id: 'done', job }]);
  });

  test('tells a client that has seen the end to stay away', async () => {
    const server = await sharedServer();
    const id = await server.submit('progress 1');
    await server.ended(id);
    const reply = await fetch(`${server.base}/v2/jobs/${id}/events`, { headers: { 'last-event-id': 'done' } });
    assert.equal(reply.status, 204);
  });

  test('tells of a job that is cancelled', async () => {
    const server = await sharedServer();
    const id = await server.submit('sleep for-ever', 'sleep for-ever', 'sleep for-ever');
    const events = allEvents(await fetch(`${server.base}/v2/jobs/${id}/events`));
    await fetch(`${server.base}/v2/jobs/${id}`, { method: 'DELETE' });
    const last = (await events).at(-1);
    assert.deepEqual([last?.type, last?.job.status, last?.job.results.length], ['done', 'failed', 3]);
  });

  test('answers 404 where there is no such job', async () => {
    const { base } = await sharedServer();
    const error = await errorOf(await fetch(`${base}/v2/jobs/nothing/events`));
    assert.deepEqual([error.status, error.code], [404, 'JOB_NOT_FOUND']);
  });

  test('ends when the service stops', async (t) => {
    const server = await serveJobs(t);
    const id = await server.submit('sleep for-ever');
    const events = allEvents(await fetch(`${server.base}/v2/jobs/${id}/events`));
    await server.app.close();
    assert.ok((await events).every(({ type }) => type !== 'done'));
  });

  test('is given to a bounded number at once, also while their jobs are being looked for', async () => {
    await using server = await serve();
    let looks = 0;
    const found = Promise.withResolvers<void>();
    server.jobs.events = async (_id, signal) => {
      looks += 1;
      await found.promise;
      return untilGone(signal, () => undefined);
    };
    const { hostname, port } = new URL(server.base);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write('GET /v2/jobs/any/events HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(1001));
    await until(() => looks + server.logged.filter((line) => line.includes('EVENT_STREAMS_FULL')).length === 1001);
    assert.equal(looks, 1000);
    const refused = await fetch(`${server.base}/v2/jobs/any/events`);
    assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
    assert.equal((await errorOf(refused)).code, 'SERVICE_OVERLOADED');
    socket.destroy();
    found.resolve();
    await until(async () => {
      const hangUp = new AbortController();
      const { status } = await fetch(`${server.base}/v2/jobs/any/events`, { signal: hangUp.signal });
      hangUp.abort();
      return status === 200;
    });
  });

  test('forgets a client that hangs up', async () => {
    await using server = await serve();
    const forgotten = Promise.withResolvers<void>();
    server.jobs.events = async (_id, signal) => untilGone(signal, forgotten.resolve);
    const hangUp = new AbortController();
    const reply = await fetch(`${server.base}/v2/jobs/any/events`, { signal: hangUp.signal });
    // Neither a proxy nor a cache is to keep events back.
    assert.deepEqual([reply.headers.get('x-accel-buffering'), reply.headers.get('cache-control')], ['no', 'no-store']);
    await readEvents(reply).next();
    hangUp.abort();
    await forgotten.promise;
  });

  test('asks for nothing more while a client does not read, and lets go when it hangs up', async (t) => {
    await using server = await serve();
    const closed = Promise.withResolvers<void>();
    let made = 0;
    server.jobs.events = async () => endlessEvents(() => (made += 1), closed.resolve);
    const { hostname, port } = new URL(server.base);
    const socket = connect(Number(port), hostname);
    t.after(() => socket.destroy());
    socket.pause().write('GET /v2/jobs/any/events HTTP/1.1\r\nHost: x\r\n\r\n');
    // The operating system's buffers are bounded; after that nothing more is asked for.
    let before = -1;
    while (made === 0 || made > before) {
      before = made;
      await sleep(300);
    }
    assert.ok(made * EVENT_BYTES < 64 * 1024 * 1024, `${made} events were made for nobody`);
    socket.destroy();
    await closed.promise;
  });
});

/** A client that may be sent everything, and is not to be dropped. */
const UNBOUNDED: EventClient = { drop: assert.fail, mayEnd: () => true };

describe('the text of events', () => {
  /** Events that come when they are asked for. */
  async function* eventsOf(...events: JobEvent[]): AsyncGenerator<JobEvent, void, void> {
    yield* events;
  }
  test('drops a client that takes nothing within the bound, and lets go of the job', async () => {
    let closed = false;
    async function* endless(): AsyncGenerator<JobEvent, void, void> {
      try {
        for (;;) yield DONE;
      } finally {
        closed = true;
      }
    }
    const dropped = Promise.withResolvers<void>();
    const text = eventStream(
      endless(),
      { commentIntervalMs: 60_000, stallTimeoutMs: 20 },
      {
        ...UNBOUNDED,
        drop: dropped.resolve,
      },
    );
    await text.next();
    await text.next();
    await dropped.promise;
    await text.return();
    assert.equal(closed, true);
  });

  test('has comments where nothing happens', async () => {
    const quiet = Promise.withResolvers<void>();
    async function* late(): AsyncGenerator<JobEvent, void, void> {
      await quiet.promise;
      yield DONE;
    }
    const text = eventStream(late(), { commentIntervalMs: 5, stallTimeoutMs: 60_000 }, UNBOUNDED);
    await text.next();
    for (let comment = 0; comment < 3; comment += 1) assert.match(String((await text.next()).value), /^: .*\n\n$/);
    quiet.resolve();
    let piece = await text.next();
    while (!piece.done && String(piece.value).startsWith(':')) piece = await text.next();
    assert.match(String(piece.value), /^id: done\nevent: done\ndata: \{.*\}\n\n$/);
    assert.equal((await text.next()).done, true);
  });

  test('drop a client for whose last event there is no room: it connects again', async () => {
    const dropped = Promise.withResolvers<void>();
    const client = { drop: dropped.resolve, mayEnd: () => false };
    const text = eventStream(eventsOf(DONE), { commentIntervalMs: 60_000, stallTimeoutMs: 60_000 }, client);
    await text.next();
    assert.equal((await text.next()).done, true);
    await dropped.promise;
  });

  test('tells all who follow a job of its end by the same bytes: they may be megabytes', async () => {
    const last = async (): Promise<Buffer | undefined> => {
      let bytes: Buffer | undefined;
      const bounds = { commentIntervalMs: 60_000, stallTimeoutMs: 60_000 };
      for await (const piece of eventStream(eventsOf({ ...DONE }), bounds, UNBOUNDED)) bytes = piece;
      return bytes;
    };
    const told = await last();
    assert.ok(told instanceof Buffer);
    assert.equal(await last(), told);
  });

  test('is made for a few of many streams at once: the event loop turns between', async () => {
    let made = 0;
    const bounds = { commentIntervalMs: 60_000, stallTimeoutMs: 60_000 };
    const streams = Array.from({ length: 1000 }, () =>
      eventStream(eventsOf({ ...DONE, type: 'progress' }), bounds, UNBOUNDED),
    );
    await Promise.all(streams.map((each) => each.next()));
    const all = Promise.all(streams.map((each) => each.next().then(() => (made += 1))));
    await nextTurn();
    assert.ok(made < 50, `${made} events were made in one turn`);
    await all;
    await Promise.all(streams.map((each) => each.return()));
  });

  test('ends with the events', async () => {
    const pieces: Buffer[] = [];
    for await (const piece of eventStream(
      eventsOf(DONE),
      { commentIntervalMs: 60_000, stallTimeoutMs: 60_000 },
      UNBOUNDED,
    )) {
      pieces.push(piece);
    }
    assert.equal(pieces.length, 2);
  });
});

describe('a feed', () => {
  test('tells a follower that comes in the middle what ended before, and each input once', async (t) => {
    const folder = temporaryFolder();
    const jobs = await startedJobs(t);
    const go = join(folder, 'go');
    const { job_id: id } = await jobs.submit(scripts(['progress 1', 'progress 1', `wait-for ${go}`]));
    await until(async () => (await jobs.find(id))?.progress?.inputs_done === 2);
    const [early, late] = [await jobs.events(id, NEVER), await jobs.events(id, NEVER)];
    const told = async (events: typeof early): Promise<number[]> => {
      const indexes: number[] = [];
      for await (const { type, job } of events ?? []) {
        if (type === 'input') indexes.push(...resultsOf(job).map((entry) => entry.input_index));
        if (indexes.length === 2) await writeFile(go, '');
      }
      return indexes;
    };
    assert.deepEqual(await Promise.all([told(early), told(late)]), [
      [0, 1, 2],
      [0, 1, 2],
    ]);
    await ended(jobs, id);
  });

  test('tells each input once to a follower that is slow, however many end meanwhile', async () => {
    const total = 1300;
    let done = 0;
    const feed = new JobFeed(
      {
        find: async () => {
          done = Math.min(total, done + 130);
          const progress = {
            inputs_done: done,
            inputs_total: total,
            bytes_done: 0,
            bytes_total: 0,
            fraction: done / total,
          };
          return done < total ? { ...JOB, status: 'running', timing, progress } : JOB;
        },
        finishedInputs: async () => Array.from({ length: done }, (_, index) => index),
        resultEntries: async (_id, indexes) => JSON.stringify(indexes.map((index) => cancelledEntry(index))),
      },
      2,
    );
    const told: number[] = [];
    for await (const { type, job } of feed.follow('a', NEVER)) {
      assert.ok(resultsOf(job).length <= 500);
      if (type === 'input') told.push(...resultsOf(job).map((entry) => entry.input_index));
      await sleep(7);
    }
    assert.deepEqual(
      told.sort((a, b) => a - b),
      Array.from({ length: total }, (_, index) => index),
    );
  });

  test('goes on after the store could not be reached for a while', async () => {
    let looks = 0;
    const feed = new JobFeed(
      {
        find: async () => {
          looks += 1;
          if (looks === 2) throw new Error('the store is gone');
          return looks < 4 ? { ...JOB, status: 'running', timing } : JOB;
        },
        finishedInputs: async () => [],
        resultEntries: async () => '[]',
      },
      1,
    );
    const types: string[] = [];
    for await (const { type } of feed.follow('a', NEVER)) types.push(type);
    assert.deepEqual([types[0], types.at(-1)], ['progress', 'done']);
  });
});
