import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { until } from '../jobs/test-jobs.ts';
import { errorOf, goodBody, serve, type TestServer } from './serve.ts';

const VIDEO = '/v2/c2pa/video';
/** The cap of `server.max_upload_bytes`; eight such bodies fill the room. */
const CAP_BYTES = 8 * 1024 * 1024;
const BODIES_AT_ONCE = 8;

let server: TestServer;

before(async () => {
  server = await serve({ SERVICE__SERVER__MAX_UPLOAD_BYTES: String(CAP_BYTES) });
});

after(() => server.app.close());

/** Begins a request whose body never comes, and waits until the server has seen it. */
async function beginBody(framing: string): Promise<Socket> {
  const { hostname, port } = new URL(server.base);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(
    `POST ${VIDEO} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${framing}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await once(socket, 'data');
  return socket;
}

/** A request of a size over 64 KiB. */
const large = (): string => JSON.stringify(goodBody).padEnd(100_000);

describe('large bodies that are received at once', () => {
  for (const framing of [`Content-Length: ${CAP_BYTES}`, 'Transfer-Encoding: chunked']) {
    test(`take bounded memory, and keep no small one out: ${framing}`, async () => {
      const sockets = await Promise.all(Array.from({ length: BODIES_AT_ONCE }, () => beginBody(framing)));
      const refused = await server.post(VIDEO, large());
      assert.match(refused.headers.get('retry-after') ?? '', /^\d+$/);
      const error = await errorOf(refused);
      assert.deepEqual([error.status, error.code], [503, 'SERVICE_OVERLOADED']);
      assert.equal((await server.post(VIDEO, goodBody)).status, 200);

      for (const socket of sockets) socket.destroy();
      await until(async () => (await server.post(VIDEO, large())).status === 200);
    });
  }

  test('give their room back when they have been read', async () => {
    for (let count = 0; count <= BODIES_AT_ONCE; count += 1) {
      // Without a length, room is made for the largest that may come.
      const body = new Blob([JSON.stringify(goodBody)]).stream();
      const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body, duplex: 'half' };
      assert.equal((await fetch(server.base + VIDEO, init as RequestInit)).status, 200);
    }
  });

  test('take their room until their jobs are recorded, and not for as long as these run', async () => {
    const { promise: recorded, resolve: record } = Promise.withResolvers<void>();
    server.jobs.recording = recorded;
    const before = server.jobs.submissions;
    const waits = new AbortController();
    const posts = Array.from({ length: BODIES_AT_ONCE }, () =>
      fetch(`${server.base}/v2/sync/c2pa/video`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: new Blob([JSON.stringify(goodBody)]).stream(),
        duplex: 'half',
        signal: waits.signal,
      } as RequestInit).catch(() => null),
    );
    await until(async () => server.jobs.submissions === before + BODIES_AT_ONCE);
    assert.equal((await server.post(VIDEO, large())).status, 503);
    record();
    await until(async () => server.jobs.waiting === BODIES_AT_ONCE);
    assert.equal((await server.post(VIDEO, large())).status, 200);
    waits.abort();
    await Promise.all(posts);
    await server.jobs.nobodyWaits();
  });

  test('over the cap are refused for that', async () => {
    const sockets = await Promise.all(
      Array.from({ length: BODIES_AT_ONCE }, () => beginBody(`Content-Length: ${CAP_BYTES}`)),
    );
    assert.equal((await server.post(VIDEO, ' '.repeat(CAP_BYTES + 1))).status, 413);
    for (const socket of sockets) socket.destroy();
  });
});
