import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { inertSigner } from '../support/jobs/inert-signer.ts';
import { configFor, startedJobs, until } from '../support/jobs/test-jobs.ts';
import { errorOf, serve } from '../support/servers/serve.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type JobServer, serveJobs } from './serve-jobs.ts';

const CROWD = 'crowd-token';
const CALM = 'calm-token';

const callers = (...names: string[]) =>
  configSchema.parse({ auth: { tokens: names.map((name) => ({ name, token: `${name}-token` })) } }).auth;

/** A queue of eight inputs: two are kept for each of two callers, and four are common. */
const configOf = (auth: Config['auth']): Config => ({ ...configFor(temporaryFolder(), { queue_capacity: 8 }), auth });

/** A server on which all inputs wait. */
const serveWaiting = (t: TestContext, config: Config): Promise<JobServer> =>
  serveJobs(t, {
    config: () => config,
    jobs: { maxRunningInputs: 0, signer: inertSigner(new Date('2100-01-01')).signer },
  });

const submit = (server: JobServer, token: string, count = 1): Promise<Response> =>
  server.post('/v2/c2pa/video', Array<string>(count).fill('progress 1'), {
    headers: { authorization: `Bearer ${token}` },
  });

/** Submits jobs of one input until one is refused; returns the number of the others, and the refusal. */
async function flood(server: JobServer, token: string): Promise<{ taken: number; refusal: Response }> {
  for (let taken = 0; ; taken += 1) {
    const reply = await submit(server, token);
    if (reply.status !== 200) return { taken, refusal: reply };
  }
}

async function assertRefused(reply: Response, status: number, code: string): Promise<void> {
  if (status >= 429) assert.match(reply.headers.get('retry-after') ?? '', /^\d+$/);
  const error = await errorOf(reply);
  assert.deepEqual([error.status, error.code], [status, code]);
}

describe('the queue', () => {
  test('keeps a part for each caller, which no other can fill', async (t) => {
    const server = await serveWaiting(t, configOf(callers('crowd', 'calm')));
    const { taken, refusal } = await flood(server, CROWD);
    assert.equal(taken, 6);
    await assertRefused(refusal, 429, 'CALLER_LIMIT');
    assert.equal((await submit(server, CALM, 2)).status, 200);
    await assertRefused(await submit(server, CALM), 503, 'SERVICE_OVERLOADED');
    await assertRefused(await submit(server, CROWD), 503, 'SERVICE_OVERLOADED');
  });

  test('takes as much again as a caller cancels', async (t) => {
    const server = await serveWaiting(t, configOf(callers('crowd', 'calm')));
    const { job_id: id } = (await (await submit(server, CROWD, 3)).json()) as { job_id: string };
    assert.equal((await flood(server, CROWD)).taken, 3);
    await fetch(`${server.base}/v2/jobs/${id}`, { method: 'DELETE', headers: { authorization: `Bearer ${CROWD}` } });
    assert.equal((await flood(server, CROWD)).taken, 3);
  });

  test('refuses a job for good that is larger than all its caller could ever have waiting', async (t) => {
    const server = await serveWaiting(t, configOf(callers('crowd', 'calm')));
    await assertRefused(await submit(server, CROWD, 7), 400, 'VALIDATION_FAILED');
    assert.equal((await submit(server, CROWD, 6)).status, 200);
  });

  test('is one where no tokens are set, or one caller has them all', async (t) => {
    for (const auth of [callers(), callers('crowd')]) {
      const server = await serveWaiting(t, configOf(auth));
      const { taken, refusal } = await flood(server, CROWD);
      assert.equal(taken, 8);
      await assertRefused(refusal, 503, 'SERVICE_OVERLOADED');
    }
  });

  test('knows after a start whose inputs wait; those of callers without a token count as common', async (t) => {
    const config = configOf(callers('crowd', 'calm'));
    const before = await startedJobs(t, { config, maxRunningInputs: 0 });
    const inputs = (count: number) =>
      Array.from({ length: count }, () => ({ type: 'local_file_path', path: 'x' }) as const);
    const record = (caller: string | null, count: number) =>
      before.submit({ operation: 'c2pa-video', request: { inputs: inputs(count) }, sync: false, caller });
    await record('crowd', 3);
    await record('gone', 1);
    await record(null, 1);
    await before.stop(0);

    const server = await serveWaiting(t, config);
    assert.equal((await flood(server, CROWD)).taken, 1);
    await assertRefused(await submit(server, CROWD), 429, 'CALLER_LIMIT');
    assert.equal((await flood(server, CALM)).taken, 2);
  });
});

describe('event streams', () => {
  test('are kept for each caller, and no other can open them', async () => {
    await using server = await serve({ SERVICE__AUTH__TOKENS: `${CROWD},${CALM}` });
    let looks = 0;
    const found = Promise.withResolvers<null>();
    server.jobs.events = async () => {
      looks += 1;
      return found.promise;
    };
    const { hostname, port } = new URL(server.base);
    const open = (token: string, count: number) => {
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write(
        `GET /v2/jobs/any/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(count),
      );
      return socket;
    };
    const refused = (reason: string) => server.logged.filter((line) => line.includes(reason)).length;
    const follow = (token: string, path = '/v2/events') =>
      fetch(server.base + path, { headers: { authorization: `Bearer ${token}` } });

    const crowd = open(CROWD, 1000);
    await until(() => looks + refused('CALLER_STREAMS_FULL') === 1000);
    assert.equal(looks, 750);
    for (const path of ['/v2/events', '/v2/jobs/any/events'])
      await assertRefused(await follow(CROWD, path), 429, 'CALLER_LIMIT');

    const calm = open(CALM, 251);
    await until(() => looks + refused('EVENT_STREAMS_FULL') === 1001);
    assert.equal(looks, 1000);
    await assertRefused(await follow(CALM), 503, 'SERVICE_OVERLOADED');

    crowd.destroy();
    // The half that all share is free again.
    await until(async () => {
      const reply = await follow(CALM);
      await reply.body?.cancel();
      return reply.status === 200;
    });
    calm.destroy();
    found.resolve(null);
  });
});
