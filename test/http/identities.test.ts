import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Config } from '#config/config.ts';
import { configSchema } from '#config/config-schema.ts';
import { errorOf } from '../support/servers/serve.ts';
import { type JobServer, serveJobs } from './serve-jobs.ts';

const identity = {
  certificate_path: '/etc/attestream/identity.pem',
  signer: { type: 'pem', private_key_path: '/etc/attestream/identity.key' },
};

/** A configuration with two identities, of which some callers may use one. */
function departments(config: Config, defaultIdentity = 'news'): Config {
  const { auth, signing } = configSchema.parse({
    auth: {
      tokens: ['newsroom', 'sport', 'desk'].map((caller) => ({
        name: caller,
        token: `token-of-${caller}-with-more`,
        ...(caller === 'desk' && { admin: true }),
      })),
      callers: { newsroom: { identities: ['news'] }, sport: { identities: ['sport', 'news'] } },
    },
    signing: { default_identity: defaultIdentity, identities: { news: identity, sport: identity } },
  });
  return { ...config, auth, signing } as Config;
}

const as = (caller: string, more: Record<string, string> = {}) => ({
  authorization: `Bearer token-of-${caller}-with-more`,
  ...more,
});

async function identityOfJob(server: JobServer, reply: Response): Promise<string | undefined> {
  const { job_id: id } = (await reply.json()) as { job_id: string };
  const found = await fetch(`${server.base}/v2/jobs/${id}`, { headers: as('desk') });
  return ((await found.json()) as { identity?: string }).identity;
}

test('a job signs with the identity that it asks for, else with the first of its caller, else with the default', async (t) => {
  const server = await serveJobs(t, { config: departments });
  const submitted = async (caller: string, params: object) =>
    identityOfJob(server, await server.post('/v2/c2pa/video', ['echo'], { body: { params }, headers: as(caller) }));
  assert.equal(await submitted('newsroom', {}), 'news');
  assert.equal(await submitted('sport', {}), 'sport');
  assert.equal(await submitted('sport', { identity: 'news' }), 'news');
  assert.equal(await submitted('desk', {}), 'news');
  assert.equal(await submitted('desk', { identity: 'sport' }), 'sport');
});

test('a job that signs nothing has no identity, and none can be asked for', async (t) => {
  const server = await serveJobs(t, { config: departments });
  const verified = await server.post('/v2/verify', ['echo'], { headers: as('newsroom') });
  assert.equal(await identityOfJob(server, verified), undefined);
  for (const path of ['/v2/verify', '/v2/package']) {
    const refused = await server.post(path, ['echo'], {
      body: { params: { identity: 'news' } },
      headers: as('newsroom'),
    });
    assert.equal(refused.status, 400);
  }
});

test('an identity that is not configured is refused, with those that the caller may use', async (t) => {
  const server = await serveJobs(t, { config: departments });
  const body = { params: { identity: 'weather' } };
  const { status, code, details } = await errorOf(
    await server.post('/v2/c2pa/video', ['echo'], { body, headers: as('newsroom') }),
  );
  assert.deepEqual([status, code], [400, 'VALIDATION_FAILED']);
  assert.deepEqual(
    [details.reason, details.field, details.identities],
    ['IDENTITY_UNKNOWN', 'params.identity', ['news']],
  );
});

test('an identity that the caller may not use is forbidden', async (t) => {
  const server = await serveJobs(t, { config: departments });
  const body = { params: { identity: 'sport' } };
  const { status, code, details } = await errorOf(
    await server.post('/v2/c2pa/video', ['echo'], { body, headers: as('newsroom') }),
  );
  assert.deepEqual([status, code], [403, 'FORBIDDEN']);
  assert.deepEqual([details.reason, details.identities], ['IDENTITY_FORBIDDEN', ['news']]);
});

test('a retry keeps the identity of its job, and is forbidden where the caller may not use that any more', async (t) => {
  let now: Config;
  const config = (given: Config) => (now = departments(given));
  const server = await serveJobs(t, { config, configNow: () => now });
  const first = await server.post('/v2/c2pa/video', ['fail /nowhere'], { headers: as('sport') });
  const { job_id: id } = (await first.json()) as { job_id: string };
  await server.jobs.whenFinished(id, 600_000, new AbortController().signal);
  const retry = () => fetch(`${server.base}/v2/jobs/${id}/retry`, { method: 'POST', headers: as('sport') });
  const callers = (identities: string[]) => ({ sport: { identities } });
  now = { ...server.config, auth: { ...server.config.auth, callers: callers(['news', 'sport']) } };
  assert.equal(await identityOfJob(server, await retry()), 'sport');
  now = { ...now, auth: { ...now.auth, callers: callers(['news']) } };
  const { status, details } = await errorOf(await retry());
  assert.deepEqual([status, details.reason], [403, 'IDENTITY_FORBIDDEN']);
});

test('an idempotency key repeated after the default changed is the same job', async (t) => {
  let now: Config;
  const config = (given: Config) => (now = departments(given));
  const server = await serveJobs(t, { config, configNow: () => now });
  const submit = () => server.post('/v2/c2pa/video', ['echo'], { headers: as('desk', { 'idempotency-key': 'one' }) });
  const { job_id: first } = (await (await submit()).json()) as { job_id: string };
  now = departments(server.config, 'sport');
  const again = await submit();
  assert.equal(again.headers.get('idempotent-replayed'), 'true');
  assert.equal(await identityOfJob(server, again), 'news');
  assert.equal(((await (await submit()).json()) as { job_id: string }).job_id, first);
});

test('admins alone reload the configuration, in a browser from pages of the service alone', async (t) => {
  const server = await serveJobs(t, { config: departments });
  const reload = async (headers: Record<string, string> = {}) =>
    (await fetch(`${server.base}/v2/reload`, { method: 'POST', headers })).status;
  const cookie = 'attestream_token=token-of-desk-with-more';
  assert.deepEqual(
    [
      await reload(),
      await reload(as('newsroom')),
      await reload({ cookie }),
      await reload({ cookie, origin: 'https://evil.example' }),
      await reload({ cookie, origin: server.base }),
      await reload(as('desk')),
    ],
    [401, 404, 403, 403, 200, 200],
  );
});

test('an admin who retries the jobs of all has none sign with what its caller may not use any more', async (t) => {
  let now: Config;
  const config = (given: Config) => (now = departments(given));
  const server = await serveJobs(t, { config, configNow: () => now });
  const failed = await server.post('/v2/c2pa/video', ['fail /nowhere'], { headers: as('sport') });
  const { job_id: id } = (await failed.json()) as { job_id: string };
  await server.jobs.whenFinished(id, 600_000, new AbortController().signal);
  now = { ...server.config, auth: { ...server.config.auth, callers: { sport: { identities: ['news'] } } } };
  const reply = await fetch(`${server.base}/v2/jobs/retry`, { method: 'POST', headers: as('desk') });
  assert.deepEqual(await reply.json(), { jobs: [], left_out: 1, more: false });
});
