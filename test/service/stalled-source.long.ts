import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { makeFilm } from '../support/media/make-film.ts';
import { answerFor, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Long enough for loopback, short enough to be waited for. */
const IDLE_MS = 300;

/**
 * A folder of one film, of which nothing behind its middle is ever sent, although the connections stay open. Under
 * `/ranges/` the film is given by ranges, under `/whole/` it is not.
 */
function fallsSilent(film: Buffer): RequestListener {
  return (request, response) => {
    if (request.url?.endsWith('/') === true) {
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(`<title>Index of ${request.url}</title><a href="film.mp4">film.mp4</a>`);
      return;
    }
    const ranges = request.url?.startsWith('/ranges/') ?? false;
    const { status, headers, part } = answerFor(request, { content: film, ranges });
    const [, start = '0'] = /^bytes=(\d+)-/.exec(status === 206 ? (request.headers.range ?? '') : '') ?? [];
    const sent = part.subarray(0, Math.max(film.length / 2 - Number(start), 0));
    response.writeHead(status, headers);
    if (request.method === 'HEAD' || sent.length === part.length) response.end(sent);
    else response.write(sent);
  };
}

/** Every file under a folder; what the service notes of its own is no output. */
function filesIn(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const found = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return found.map(({ parentPath, name }) => join(parentPath, name)).filter((path) => !path.includes('/.attestream/'));
}

test('a server that falls silent while a folder is packaged ends the input, which says so and leaves nothing', async (t) => {
  const home = temporaryFolder();
  const server = await serve(t, fallsSilent(readFileSync(makeFilm(home))));
  const folder = join(home, 'service');
  const settings = { SERVICE__INPUT_RESOLVERS__HTTP__IDLE_TIMEOUT_MS: String(IDLE_MS) };
  await using service = await startService({ folder, settings });
  const jobs = [
    ['package', 'ranges'],
    ['c2pa/package', 'whole'],
  ].map(async ([operation, place]) => {
    const inputs = [{ type: 'remote_folder_url', url: `${server.base}/${place}/` }];
    const { results } = await service.waitFor(await service.submit(`/v2/${operation}`, { inputs, params: {} }));
    assert.equal(results[0]?.error_details?.['reason'], 'HTTP_TIMED_OUT', results[0]?.error ?? 'it was packaged');
  });
  await Promise.all(jobs);
  for (const place of ['data/scratch', 'output']) assert.deepEqual(filesIn(join(folder, place)), [], place);
});
