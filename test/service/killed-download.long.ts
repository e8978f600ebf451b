import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startService } from '../../scripts/running-service.ts';
import { makeFilm } from '../support/publications/make-publication.ts';
import { startServer } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const LOOK_INTERVAL_MS = 20;
const folder = temporaryFolder();
const home = join(folder, 'service');
const scratch = join(home, 'data', 'scratch');
const film = readFileSync(makeFilm(folder));

/** Half of the file and no more, until the test says so. */
const waiting: ServerResponse[] = [];
let gives = 'half';
const server = await startServer((_request, response) => {
  response.writeHead(200, { 'content-length': String(film.length) });
  if (gives === 'half') waiting.push(response);
  response.write(film.subarray(0, film.length / 2));
  if (gives === 'all') response.end(film.subarray(film.length / 2));
});
after(() => server.close());

test('A download whose service is killed leaves nothing behind, and is made again at the next start', async () => {
  const first = await startService({ folder: home });
  const input = { type: 'remote_file_url', url: `${server.base}/film.mp4?sig=x` };
  const jobId = await first.submit('/v2/c2pa/video', { inputs: [input] });
  while (!existsSync(scratch) || filesIn(scratch) === 0) await sleep(LOOK_INTERVAL_MS);
  process.kill(first.pid, 'SIGKILL');
  await first.ended;
  for (const response of waiting) if (!response.destroyed) await once(response, 'close');
  assert.notEqual(filesIn(scratch), 0, 'nobody was left to remove it');
  const unreachable = noteUnreachableStaging();

  gives = 'all';
  const second = await startService({ folder: home });
  try {
    const { status, results } = await second.waitFor(jobId);
    assert.equal(status, 'succeeded', results[0]?.error);
    assert.deepEqual(readdirSync(scratch), []);
    assert.ok(readFileSync(second.logPath, 'utf8').includes(unreachable), 'what could not be removed is logged');
  } finally {
    await second.stop();
  }
});

/** Notes a staged file whose folder cannot be opened, and returns its path. */
function noteUnreachableStaging(): string {
  const staging = join(home, 'data', 'staging');
  const path = join(home, 'circle', `.attestream-${'0'.repeat(32)}.part`);
  symlinkSync('circle', join(home, 'circle'));
  mkdirSync(staging, { recursive: true });
  writeFileSync(join(staging, 'a-0-1-00000000'), `${path}\0`);
  return path;
}

function filesIn(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).length;
}
