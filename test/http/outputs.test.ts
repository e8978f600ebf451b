import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { urlToHttpOptions } from 'node:url';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const FILM = Buffer.from('0123456789');
let folder: string;
let server: TestServer;
let job: string;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'attestream-outputs-'));
  await mkdir(join(folder, 'publication', 'video'), { recursive: true });
  await writeFile(join(folder, 'film #1?.mp4'), FILM);
  await writeFile(join(folder, 'secret.txt'), 'secret');
  await writeFile(join(folder, 'empty.wav'), '');
  await writeFile(join(folder, 'film.c2pa'), 'manifest');
  await writeFile(join(folder, 'publication', 'master.m3u8'), '#EXTM3U\n');
  await writeFile(join(folder, 'publication', 'page.html'), '<script>alert(1)</script>');
  await writeFile(join(folder, 'publication', 'video', '1.m4s'), FILM);
  await symlink(join(folder, 'secret.txt'), join(folder, 'publication', 'link.m3u8'));
  await symlink(folder, join(folder, 'publication', 'up'));
  await symlink(join(folder, 'secret.txt'), join(folder, 'replaced.mp4'));
  await mkdir(join(folder, 'elsewhere'));
  await writeFile(join(folder, 'elsewhere', 'film.mp4'), 'secret');
  await symlink(join(folder, 'elsewhere'), join(folder, 'replaced'));
  server = await serve();
  job = ((await (await server.post('/v2/c2pa/video', goodBody)).json()) as { job_id: string }).job_id;
  server.jobs.end(job, [
    { input_index: 0, status: 'succeeded', output_path: join(folder, 'film #1?.mp4') },
    { input_index: 1, status: 'succeeded', output_path: join(folder, 'publication') },
    { input_index: 2, status: 'failed', error: 'no' },
    { input_index: 3, status: 'succeeded', output_path: join(folder, 'empty.wav') },
    {
      input_index: 4,
      status: 'succeeded',
      output_path: join(folder, 'film #1?.mp4'),
      sidecar_path: join(folder, 'film.c2pa'),
    },
    { input_index: 5, status: 'succeeded', output_path: join(folder, 'replaced.mp4') },
    { input_index: 6, status: 'succeeded', output_path: join(folder, 'replaced') },
    { input_index: 7, status: 'succeeded', output_path: join(folder, 'replaced', 'film.mp4') },
  ]);
});

after(async () => {
  await server.app.close();
  await rm(folder, { recursive: true });
});

const addressOf = (path: string) => `${server.base}/v2/jobs/${job}/outputs/${path}`;
const get = (path: string, headers: Record<string, string> = {}) => fetch(addressOf(path), { headers });
const FILM_PATH = `0/${encodeURIComponent('film #1?.mp4')}`;

describe('an output', () => {
  test('is sent under its name, with its type, size and an entity tag', async () => {
    const reply = await get(FILM_PATH);
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get('content-type'), 'video/mp4');
    assert.equal(reply.headers.get('content-length'), '10');
    assert.deepEqual(Buffer.from(await reply.arrayBuffer()), FILM);
    assert.equal((await get(FILM_PATH, { 'if-none-match': reply.headers.get('etag') ?? '' })).status, 304);
  });

  for (const [ifNoneMatch, status] of [
    ['ETAG', 304],
    ['W/ETAG', 304],
    ['"other" , W/"another",ETAG', 304],
    ['*', 304],
    ['"other", W/"another"', 200],
    ['other', 200],
    ['', 200],
  ] as const) {
    test(`is answered for "If-None-Match: ${ifNoneMatch}" with status ${status}`, async () => {
      const etag = (await get(FILM_PATH)).headers.get('etag') ?? '';
      const reply = await get(FILM_PATH, { 'if-none-match': ifNoneMatch.replace('ETAG', etag) });
      assert.deepEqual([reply.status, reply.headers.get('etag')], [status, etag]);
    });
  }

  test('is a file in a publication', async () => {
    const reply = await get('1/video/1.m4s');
    assert.deepEqual(Buffer.from(await reply.arrayBuffer()), FILM);
    assert.equal((await get('1/master.m3u8')).headers.get('content-type'), 'application/vnd.apple.mpegurl');
  });

  for (const [range, status, body, contentRange] of [
    ['bytes=2-4', 206, '234', 'bytes 2-4/10'],
    ['bytes=7-', 206, '789', 'bytes 7-9/10'],
    ['bytes=-3', 206, '789', 'bytes 7-9/10'],
    ['bytes=-99', 206, '0123456789', 'bytes 0-9/10'],
    ['bytes=8-99', 206, '89', 'bytes 8-9/10'],
    ['bytes=8-99999999999999999999', 206, '89', 'bytes 8-9/10'],
    ['bytes=4-2', 200, '0123456789', null],
    ['bytes=-', 200, '0123456789', null],
    ['bytes=0-1,99-', 200, '0123456789', null],
    ['bytes=0-1,4-5', 200, '0123456789', null],
    ['lines=1-2', 200, '0123456789', null],
    ['nonsense', 200, '0123456789', null],
  ] as const) {
    test(`is sent for "Range: ${range}" with status ${status}`, async () => {
      const reply = await get(FILM_PATH, { range });
      assert.equal(reply.status, status);
      assert.equal(reply.headers.get('content-range'), contentRange);
      assert.equal(await reply.text(), body);
    });
  }

  test('is sent whole where it changed since the client has a part of it', async () => {
    const reply = await get(FILM_PATH, { range: 'bytes=2-4', 'if-range': '"another"' });
    assert.deepEqual([reply.status, await reply.text()], [200, '0123456789']);
  });

  test('is refused where the range lies behind its end', async () => {
    for (const range of ['bytes=10-', 'bytes=10-12', 'bytes=99999999999999999999-', 'bytes=-0']) {
      const reply = await get(FILM_PATH, { range });
      assert.equal(reply.headers.get('content-range'), 'bytes */10');
      const error = await errorOf(reply);
      assert.deepEqual([error.status, error.code], [416, 'RANGE_NOT_SATISFIABLE']);
    }
  });

  test('may be empty', async () => {
    const reply = await get('3/empty.wav');
    assert.deepEqual([reply.status, await reply.text()], [200, '']);
  });

  test('ends the connection where its file is cut short meanwhile', async () => {
    const large = join(folder, 'publication', 'large.bin');
    await writeFile(large, '');
    await truncate(large, 256 * 1024 * 1024);
    await assert.rejects(async () => {
      const { body } = await get('1/large.bin');
      for await (const _piece of body ?? []) await truncate(large, 10);
    });
    await rm(large);
  });

  test('is described without its bytes to HEAD', async () => {
    const reply = await fetch(addressOf(FILM_PATH), { method: 'HEAD' });
    assert.deepEqual([reply.status, reply.headers.get('content-length'), await reply.text()], [200, '10', '']);
  });

  test('runs no script of its own in a browser', async () => {
    const reply = await get('1/page.html');
    assert.match(reply.headers.get('content-security-policy') ?? '', /(^|; )default-src 'none'.*sandbox$/);
    assert.equal(reply.headers.get('x-content-type-options'), 'nosniff');
    await reply.text();
  });
});

test('a sidecar is sent and listed beside its file', async () => {
  assert.equal(await (await get('4/film.c2pa')).text(), 'manifest');
  assert.equal((await get('0/film.c2pa')).status, 404);
  const { files } = (await (await get('4')).json()) as { files: { path: string }[] };
  assert.deepEqual(
    files.map(({ path }) => path),
    ['film #1?.mp4', 'film.c2pa'],
  );
});

test('the files of an output are listed, without links', async () => {
  const listing = async (index: number) => (await get(String(index))).json();
  assert.deepEqual(await listing(0), { files: [{ path: 'film #1?.mp4', size_bytes: 10 }], more: false });
  assert.deepEqual(await listing(1), {
    files: [
      { path: 'master.m3u8', size_bytes: 8 },
      { path: 'page.html', size_bytes: 25 },
      { path: 'video/1.m4s', size_bytes: 10 },
    ],
    more: false,
  });
  for (const replaced of [5, 6, 7]) assert.deepEqual(await listing(replaced), { files: [], more: false });
  assert.equal((await errorOf(await get('2'))).status, 404);
});

describe('nothing is sent', () => {
  for (const [why, path] of [
    ['of an input that failed', '2/film.mp4'],
    ['of an input that there is not', '9/film.mp4'],
    ['of an index that is no number', 'x/film.mp4'],
    ['under another name', '0/film.mp4'],
    ['of a folder', '1/video'],
    ['of a folder with a slash', '1/video/'],
    ['of a file that is not there', '1/video/2.m4s'],
    ['below a file', '1/master.m3u8/x'],
    ['behind a link', '1/link.m3u8'],
    ['behind a link to a folder', '1/up/secret.txt'],
    ['where a link has replaced the file', '5/replaced.mp4'],
    ['where a link has replaced the folder', '6/film.mp4'],
    ['where a link has replaced a folder on the way', '7/film.mp4'],
    ['above the output', '1/%2e%2e/secret.txt'],
    ['above the output, with an encoded slash', '1/..%2fsecret.txt'],
    ['beside the output', '0/secret.txt'],
    ['with a zero byte', '1/master.m3u8%00'],
    ['with a name that is too long', `1/${'a'.repeat(300)}`],
  ] as const) {
    test(why, async () => {
      // Not by fetch, which resolves dots itself.
      const reply = await new Promise<number | undefined>((resolve, reject) => {
        const { host, port, path: prefix } = urlToHttpOptions(new URL(addressOf('')));
        request({ host, port, path: prefix + path.replace('%2e%2e', '..') }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        })
          .on('error', reject)
          .end();
      });
      assert.equal(reply, 404);
    });
  }
});
