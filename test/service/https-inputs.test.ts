import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type RunningService, startService } from '../../scripts/running-service.ts';
import { decodedFrames } from '../support/judges/publication-judges.ts';
import { makeFilm } from '../support/publications/make-publication.ts';
import { sendFile } from '../support/servers/http-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const folder = temporaryFolder();
const film = makeFilm(folder);
const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
execFileSync(
  'openssl',
  `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 -keyout ${key} -out ${cert}`.split(
    ' ',
  ),
  { stdio: 'pipe' },
);

const content = readFileSync(film);
const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (request, response) => {
  if (request.url === '/to-http') response.writeHead(302, { location: 'http://127.0.0.1/film.mp4' }).end();
  else sendFile(request, response, { content });
});
let base: string;
let service: RunningService;
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  service = await startService({ folder: join(folder, 'service'), settings: { NODE_EXTRA_CA_CERTS: cert } });
});
after(async () => {
  await service?.stop();
  server.closeAllConnections();
  server.close();
});

describe('a file over HTTPS', () => {
  test('is signed where the authority of the server is trusted', async () => {
    const [result] = (await sign('/film.mp4')).results;
    assert.equal(result?.status, 'succeeded', result?.error);
    assert.equal(decodedFrames(result?.output_path as string), decodedFrames(film));
  });

  test('is not fetched where it is redirected to HTTP', async () => {
    const { status, results } = await sign('/to-http');
    assert.equal(status, 'failed');
    assert.deepEqual(results[0]?.error_details, {
      reason: 'HTTP_REDIRECT_REFUSED',
      address: `${base}/to-http`,
      problem: 'it leads from HTTPS to HTTP',
    });
  });
});

function sign(path: string) {
  return service.runSync('/v2/sync/c2pa/video', { inputs: [{ type: 'remote_file_url', url: base + path }] });
}
