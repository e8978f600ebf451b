import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { playedFile } from '#cli/played-file.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { withoutPrivileges } from '../support/without-privileges.ts';
import { attestream, PROGRAM } from './run-attestream.ts';

/** Starts the player, and returns its address. It exits with the test. */
async function playerOf(t: TestContext, path: string, env: NodeJS.ProcessEnv = {}): Promise<URL> {
  const variables = { ...process.env, DISPLAY: '', WAYLAND_DISPLAY: '', ...env };
  const child = spawn(process.execPath, [PROGRAM, 'play', path], {
    env: variables,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const exited = once(child, 'exit');
  t.after(async () => {
    child.kill('SIGINT');
    assert.deepEqual(await exited, [130, null]);
  });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return new URL(line.toString().trim());
}

/** Returns the status of a request as it is written, which `fetch` would change. */
async function statusOf(address: URL, path: string, host = address.host): Promise<number | undefined> {
  const asked = request({ host: address.hostname, port: address.port, path, headers: { host } }).end();
  const [answer] = await once(asked, 'response');
  answer.resume();
  return answer.statusCode;
}

/** Makes a folder with a publication's playlist, a link out of it, and a file beside it. */
function publication(): { readonly folder: string; readonly beside: string } {
  const above = temporaryFolder();
  const folder = join(above, 'film');
  const beside = join(above, 'beside.txt');
  mkdirSync(join(folder, 'video'), { recursive: true });
  writeFileSync(join(folder, 'master.m3u8'), '#EXTM3U\n');
  writeFileSync(join(folder, 'video', 'init.mp4'), 'init');
  writeFileSync(beside, 'private');
  symlinkSync(beside, join(folder, 'link.txt'));
  return { folder, beside };
}

describe('attestream play', () => {
  test('serves a publication under a path that nobody guesses, and nothing else', async (t) => {
    const { folder } = publication();
    const address = await playerOf(t, folder);
    const base = address.pathname;
    assert.equal(address.hostname, '127.0.0.1');
    assert.match(base, /^\/[\w-]{22}\/$/);
    assert.equal(address.hash, '#/play?src=media%2Fmaster.m3u8');
    assert.equal(await statusOf(address, `${base}media/video/init.mp4`), 200);
    assert.equal(await statusOf(address, `${base}console/app.js`), 200);
    assert.equal(await statusOf(address, '/media/master.m3u8'), 404);
    assert.equal(await statusOf(address, '/'), 404);
    assert.notEqual(await statusOf(address, `${base}media/link.txt`), 200);
    for (const path of ['../beside.txt', '..%2fbeside.txt', '%2e%2e/beside.txt']) {
      assert.notEqual(await statusOf(address, `${base}media/${path}`), 200, path);
    }
  });

  test('serves of a folder only the file that was named', async (t) => {
    const folder = temporaryFolder();
    for (const name of ['film.mp4', 'other.mp4']) writeFileSync(join(folder, name), name);
    const address = await playerOf(t, join(folder, 'film.mp4'));
    assert.equal(await statusOf(address, `${address.pathname}media/film.mp4`), 200);
    assert.equal(await statusOf(address, `${address.pathname}media/other.mp4`), 404);
  });

  test('answers under its own host name only', async (t) => {
    const address = await playerOf(t, publication().folder);
    const path = `${address.pathname}media/master.m3u8`;
    assert.equal(await statusOf(address, path, 'attacker.example.com'), 403);
    assert.equal(await statusOf(address, path, `localhost:${address.port}`), 200);
  });

  test('hands the address to the desktop as one argument', async (t) => {
    const bin = temporaryFolder();
    const seen = join(bin, 'seen');
    writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\nprintf '%s|' "$#" "$@" > ${seen}.new\nmv ${seen}.new ${seen}\n`);
    chmodSync(join(bin, 'xdg-open'), 0o755);
    const env = { DISPLAY: ':0', PATH: `${bin}:${process.env['PATH']}` };
    const address = await playerOf(t, publication().folder, env);
    await until(async () => existsSync(seen));
    assert.equal(readFileSync(seen, 'utf8'), `1|${address.href}|`);
  });

  test('says what is not there to play', async () => {
    const folder = temporaryFolder();
    const [empty, missing] = await Promise.all([
      attestream(['play', folder]),
      attestream(['play', join(folder, 'none')]),
    ]);
    assert.equal(empty?.code, 2);
    assert.match(empty?.stderr ?? '', /master\.m3u8/);
    assert.equal(missing?.code, 2);
  });

  test('plays the only HLS playlist of a folder, whatever its name', async (t) => {
    const folder = temporaryFolder();
    for (const name of ['evening.m3u8', 'evening.mpd']) writeFileSync(join(folder, name), '#EXTM3U\n');
    const address = await playerOf(t, folder);
    assert.equal(address.hash, '#/play?src=media%2Fevening.m3u8');
  });

  test('refuses an MPD, and a file that it may not read', async () => {
    const folder = temporaryFolder();
    const closed = join(folder, 'closed.mp4');
    writeFileSync(join(folder, 'film.mpd'), '<MPD/>');
    writeFileSync(closed, 'film', { mode: 0o000 });
    const mpd = await attestream(['play', join(folder, 'film.mpd')]);
    assert.equal(mpd.code, 2);
    assert.match(mpd.stderr, /HLS playlist/);
    chmodSync(folder, 0o755);
    await withoutPrivileges(async () => assert.throws(() => playedFile(closed), { reason: 'SOURCE_NOT_PERMITTED' }));
  });
});
