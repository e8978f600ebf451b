import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { browsedFolder } from '#contract/browsed-folder.ts';
import { errorOf, serve, type TestServer } from '../support/servers/serve.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';

/** A folder with two roots in it, and what is none of a caller's business. */
let place: string;
let server: TestServer;

before(async () => {
  place = await mkdtemp(join(tmpdir(), 'attestream-browse-'));
  await chmod(place, 0o755);
  for (const folder of ['media/day/inner', 'ingest', 'private', 'media/data']) {
    await mkdir(join(place, folder), { recursive: true });
  }
  for (const file of [
    'media/b.mp4',
    'media/a <b>.mp4',
    'media/.hidden',
    'media/day/c.wav',
    'private/key.pem',
    'media/data/jobs',
  ]) {
    await writeFile(join(place, file), 'bytes');
  }
  await symlink(join(place, 'private'), join(place, 'media/out'));
  await symlink(join(place, 'private/key.pem'), join(place, 'media/out.mp4'));
  await symlink(join(place, 'nowhere'), join(place, 'media/nowhere.mp4'));
  await symlink(join(place, 'media/day'), join(place, 'media/today'));
  server = await serve({
    SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: `${join(place, 'media')},${join(place, 'ingest')},${join(place, 'missing')}`,
    SERVICE__JOBS__DATA_DIR: join(place, 'media/data'),
  });
});
after(async () => {
  await server?.app.close();
  await rm(place, { recursive: true });
});

const get = (query: Record<string, string>, base = server.base) =>
  fetch(`${base}/v2/inputs?${new URLSearchParams(query)}`);
const list = async (query: Record<string, string>) => browsedFolder.parse(await (await get(query)).json());
const namesIn = async (query: Record<string, string>) => (await list(query)).entries.map(({ name }) => name);

describe('GET /v2/inputs', () => {
  test('lists the roots that there are', async () => {
    const { path, parent, entries, next_cursor } = await list({});
    assert.deepEqual([path, parent, next_cursor], [null, null, null]);
    assert.deepEqual(
      entries.map(({ path: root, kind }) => [root, kind]),
      [
        [join(place, 'media'), 'folder'],
        [join(place, 'ingest'), 'folder'],
      ],
    );
  });

  test('lists files and folders that inputs are read from, and nothing else', async () => {
    const { path, parent, entries } = await list({ path: join(place, 'media') });
    assert.deepEqual([path, parent], [join(place, 'media'), null]);
    assert.deepEqual(entries, [
      { name: 'a <b>.mp4', path: join(place, 'media/a <b>.mp4'), kind: 'file', size_bytes: 5 },
      { name: 'b.mp4', path: join(place, 'media/b.mp4'), kind: 'file', size_bytes: 5 },
      { name: 'day', path: join(place, 'media/day'), kind: 'folder' },
      { name: 'today', path: join(place, 'media/today'), kind: 'folder' },
    ]);
  });

  test('leads from a folder to the one above it, up to the root', async () => {
    const { parent } = await list({ path: join(place, 'media/day/inner') });
    assert.equal(parent, join(place, 'media/day'));
  });

  test('lists a folder page by page', async () => {
    const seen: string[] = [];
    let cursor: string | null = '';
    while (cursor !== null) {
      const page = await list({ path: join(place, 'media'), limit: '1', ...(cursor !== '' && { cursor }) });
      assert.ok(page.entries.length <= 1);
      seen.push(...page.entries.map(({ name }) => name));
      cursor = page.next_cursor;
    }
    assert.deepEqual(seen, await namesIn({ path: join(place, 'media') }));
  });

  for (const path of [
    'private',
    'media/../private',
    'media/out',
    'media/data',
    'media/none',
    'media/b.mp4',
    'missing',
  ]) {
    test(`answers 404 to ${path}`, async () => {
      const error = await errorOf(await get({ path: `${place}/${path}` }));
      assert.deepEqual([error.status, error.code, error.details?.field], [404, 'NOT_FOUND', 'path']);
    });
  }

  test('does not tell what exists outside the roots from what does not', async () => {
    const [there, missing] = await Promise.all(
      ['private/key.pem', 'private/none'].map(
        async (path) => (await errorOf(await get({ path: join(place, path) }))).message,
      ),
    );
    assert.equal(there?.replace('key.pem', ''), missing?.replace('none', ''));
  });

  test('tells a file from nothing at all', async () => {
    const [file, nothing] = await Promise.all(
      ['b.mp4', 'none'].map(async (name) => {
        const { message } = await errorOf(await get({ path: join(place, 'media', name) }));
        return message.replace(name, '');
      }),
    );
    assert.notEqual(file, nothing);
  });

  test('does not name the folder that the service was started in', async () => {
    for (const path of ['private', '.', 'none/../x']) {
      const { status, message } = await errorOf(await get({ path }));
      assert.equal(status, 404);
      assert.ok(!message.includes(process.cwd()), message);
    }
  });

  test('answers 404 to a folder that the service may not read', async () => {
    const closed = join(place, 'ingest/closed');
    await mkdir(closed, { mode: 0o000 });
    const reply = await withoutPrivileges(() => get({ path: closed }));
    assert.equal(reply.status, 404);
    await rm(closed, { recursive: true });
  });

  for (const query of [
    { path: '' },
    { path: '/a\0b' },
    { limit: '0' },
    { limit: '1001' },
    { cursor: 'a=' },
    { folder: '/' },
  ]) {
    test(`answers 400 to ${JSON.stringify(query)}`, async () => {
      const error = await errorOf(await get(query as Record<string, string>));
      assert.deepEqual([error.status, error.details?.field], [400, Object.keys(query)[0]]);
    });
  }

  test('is there only where roots are set', async () => {
    await using open = await serve();
    for (const query of [{}, { path: '/' }]) {
      const error = await errorOf(await get(query, open.base));
      assert.deepEqual([error.status, error.code, error.details.field], [404, 'NOT_FOUND', undefined]);
    }
  });

  test('asks for a token where tokens are set', async () => {
    await using closed = await serve({
      SERVICE__INPUT_RESOLVERS__LOCAL__ROOTS: place,
      SERVICE__AUTH__TOKENS: 'a-token',
    });
    assert.equal((await get({}, closed.base)).status, 401);
  });
});
