import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { startService } from '../../scripts/running-service.ts';
import { sendFile, serve } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { PATTERNS, SAMPLE, signFolder, told, verifyFolder } from './signed-folders.ts';

const INTACT = { state: 'valid', presentation: 'as_signed', first: [] };

test('a playlist that a server redirects is ambiguous where players then look for its media in another folder', async (t) => {
  await using service = await startService({ folder: temporaryFolder() });
  const root = await signFolder(service, '/v2/sync/c2pa/fragmented', SAMPLE, PATTERNS);
  const redirects = new Map<string, string>();
  const server = await serve(t, (request, response) => {
    const path = request.url ?? '';
    const location = redirects.get(path);
    const file = join(root, /[^/?]*(?=\?|$)/.exec(path)?.[0] ?? '');
    if (location !== undefined) response.writeHead(302, { location }).end();
    else if (path === '/film/') {
      const listed = readdirSync(root).map((name) => ({ name, type: 'file' }));
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(listed));
    } else if (!existsSync(file)) response.writeHead(404).end();
    else sendFile(request, response, { content: readFileSync(file) });
  });
  const entries = ['/film/master.m3u8', '/film/manifest.mpd', '/film/'];
  for (const entry of entries) assert.deepEqual(told(await verifyFolder(service, server.base + entry)), INTACT, entry);

  // Players find media by the address of the file, wherever that comes from, and by that of a playlist in the same folder.
  redirects.set('/film/fragment-0-1.m4s', '/cdn/7c1e');
  redirects.set('/cdn/7c1e', '/cdn/fragment-0-1.m4s');
  redirects.set('/film/media_1.m3u8', '/film/a/../media_1.m3u8?version=2');
  for (const entry of entries) assert.deepEqual(told(await verifyFolder(service, server.base + entry)), INTACT, entry);

  for (const [playlist, entry] of [
    ['media_0.m3u8', '/film/master.m3u8'],
    ['media_0.m3u8', '/film/'],
    ['manifest.mpd', '/film/'],
  ] as const) {
    redirects.clear();
    redirects.set(`/film/${playlist}`, `/other/${playlist}`);
    const verification = await verifyFolder(service, server.base + entry);
    const first = [{ kind: 'ambiguous', part: 'playlist', file: playlist }];
    assert.deepEqual(told(verification), { ...INTACT, state: 'invalid', first }, entry);
    assert.match(verification.summary, new RegExp(`"${playlist}".*redirects it to another folder`));
  }

  // All files are those of another folder, and players find them there.
  redirects.clear();
  for (const name of readdirSync(root)) redirects.set(`/film/${name}`, `/mirror/${name}?from=film`);
  assert.deepEqual(told(await verifyFolder(service, `${server.base}/film/`)), INTACT);

  // The address of the input is followed to where it leads, as players do.
  redirects.clear();
  redirects.set('/watch/master.m3u8', '/film/master.m3u8');
  assert.deepEqual(told(await verifyFolder(service, `${server.base}/watch/master.m3u8`)), INTACT);
});
