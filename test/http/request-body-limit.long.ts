import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { RequestBodyLimit } from '#http/hooks/request-bodies.ts';
import { until } from '../support/jobs/test-jobs.ts';
import { errorOf, goodBody, serve, type TestServer } from '../support/servers/serve.ts';

const VIDEO = '/v2/c2pa/video';
/** The cap of `server.max_upload_bytes`; eight such bodies, whole but for a byte, fill the memory for bodies. */
const CAP_BYTES = 8 * 1024 * 1024;
const BODIES_AT_ONCE = 8;

let server: TestServer;

before(async () => {
  server = await serve({ SERVICE__SERVER__MAX_UPLOAD_BYTES: String(CAP_BYTES) });
});

after(() => server.app.close());

/** Begins a request, and sends the beginning of its body. */
async function beginBody(framing: string, beginning = ''): Promise<Socket> {
  const { hostname, port } = new URL(server.base);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  socket.write(
    `POST ${VIDEO} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${framing}\r\nExpect: 100-continue\r\n\r\n`,
  );
  await once(socket, 'data');
  await new Promise((resolve) => socket.write(beginning, resolve));
  return socket;
}

/** Begins as many large bodies as there is memory for, and keeps back the last byte of each. */
const stalledBodies = (): Promise<Socket[]> =>
  Promise.all(
    Array.from({ length: BODIES_AT_ONCE }, () => beginBody(`Content-Length: ${CAP_BYTES}`, ' '.repeat(CAP_BYTES - 1))),
  );

/** Begins a body that is as large as may be, and resolves with the status of its answer. */
async function statusOfWhole(): Promise<number> {
  return (await server.post(VIDEO, JSON.stringify(goodBody).padEnd(CAP_BYTES))).status;
}

describe('bodies that are received at once', () => {
  for (const framing of [`Content-Length: ${CAP_BYTES}`, 'Transfer-Encoding: chunked']) {
    test(`take nothing before they come: ${framing}`, async () => {
      const sockets = await Promise.all(Array.from({ length: BODIES_AT_ONCE + 4 }, () => beginBody(framing)));
      assert.equal(await statusOfWhole(), 200);
      for (const socket of sockets) socket.destroy();
    });
  }

  test('let one of 5 MB be answered beside 50 that are idle', async () => {
    const sockets = await Promise.all(Array.from({ length: 50 }, () => beginBody(`Content-Length: ${CAP_BYTES}`, '{')));
    assert.equal((await server.post(VIDEO, JSON.stringify(goodBody).padEnd(5_000_000))).status, 200);
    for (const socket of sockets) socket.destroy();
  });

  test('take bounded memory, and those that stall make room for others', async () => {
    const sockets = await stalledBodies();
    const refused = Promise.race(sockets.map(async (socket) => String((await once(socket, 'data'))[0])));
    assert.equal((await server.post(VIDEO, goodBody)).status, 200);
    await until(async () => (await statusOfWhole()) === 200);
    await until(async () => (await statusOfWhole()) === 200);
    assert.match(await refused, /^HTTP\/1\.1 503 [\s\S]*Retry-After: \d+[\s\S]*SERVICE_OVERLOADED/i);
    for (const socket of sockets) socket.destroy();
  });

  test('return their memory when they have been read', async () => {
    for (let count = 0; count <= BODIES_AT_ONCE; count += 1) assert.equal(await statusOfWhole(), 200);
  });

  test('hold their memory until their jobs are recorded, and not for as long as these run', async () => {
    const { promise: recorded, resolve: record } = Promise.withResolvers<void>();
    server.jobs.recording = recorded;
    const before = server.jobs.submissions;
    const waits = new AbortController();
    const posts = Array.from({ length: BODIES_AT_ONCE }, () =>
      fetch(`${server.base}/v2/sync/c2pa/video`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(goodBody).padEnd(CAP_BYTES),
        signal: waits.signal,
      }).catch(() => null),
    );
    await until(async () => server.jobs.submissions === before + BODIES_AT_ONCE);
    const error = await errorOf(await server.post(VIDEO, goodBody));
    assert.deepEqual([error.status, error.code], [503, 'SERVICE_OVERLOADED']);
    record();
    await until(async () => server.jobs.waiting === BODIES_AT_ONCE);
    assert.equal(await statusOfWhole(), 200);
    waits.abort();
    await Promise.all(posts);
    await server.jobs.nobodyWaits();
  });

  test('over the cap are refused for that', async () => {
    const sockets = await stalledBodies();
    assert.equal((await server.post(VIDEO, ' '.repeat(CAP_BYTES + 1))).status, 413);
    for (const socket of sockets) socket.destroy();
  });
});

describe('the memory for bodies', () => {
  const LARGE = 8 * 1024 * 1024;
  const SMALL = 1024;

  /** A limit with a clock, and leases that fill it; `refused` tells which of them were refused, in that order. */
  function filled() {
    const clock = { ms: 0 };
    const limit = new RequestBodyLimit(LARGE, () => clock.ms);
    const refused: number[] = [];
    const arriving = (sizeBytes: number, name: number) => {
      const lease = limit.open();
      lease.refuse = () => refused.push(name);
      lease.arrived(sizeBytes);
      lease.grow(sizeBytes);
      return lease;
    };
    const leases = Array.from({ length: BODIES_AT_ONCE }, (_, name) => arriving(LARGE - name, name));
    return { clock, limit, refused, arriving, leases };
  }

  test('is kept for those that have it and arrive fast enough', () => {
    const { clock, refused, arriving, leases } = filled();
    for (let ms = 900; ms < 10_000; ms += 900) {
      clock.ms = ms;
      for (const lease of leases) lease.arrived(LARGE / 10);
    }
    assert.throws(() => arriving(LARGE, -1), { reason: 'BODIES_TOO_LARGE_TOGETHER' });
    assert.deepEqual(refused, []);
  });

  test('is taken from the largest that is slow, also where it sends a byte now and then', () => {
    const { clock, refused, arriving, leases } = filled();
    for (let ms = 900; ms < 5_000; ms += 900) {
      clock.ms = ms;
      for (const [name, lease] of leases.entries()) lease.arrived(name === 3 || name === 5 ? 1 : LARGE / 10);
    }
    arriving(LARGE, -1);
    assert.deepEqual(refused, [3]);
    arriving(LARGE - 10, -2);
    assert.deepEqual(refused, [3, 5]);
    assert.throws(() => arriving(LARGE, -3), { reason: 'BODIES_TOO_LARGE_TOGETHER' });
  });

  test('is taken from the largest of all for a small body, and never from a whole one', () => {
    const { refused, arriving, leases } = filled();
    for (const [name, lease] of leases.entries()) if (name !== 7) lease.refuse = null;
    for (let count = 0; count < 8000; count += 1) arriving(SMALL, -1);
    assert.deepEqual(refused, [7]);
    assert.throws(() => {
      for (let count = 0; count < 8000; count += 1) arriving(SMALL, -1);
    });
  });

  test('is returned whole, however bodies end', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 2 * LARGE }), { maxLength: 40 }), (sizes) => {
        const limit = new RequestBodyLimit(LARGE);
        const leases = sizes.map((sizeBytes) => {
          const lease = limit.open();
          lease.refuse = () => undefined;
          for (const part of [1, 2, 3]) {
            try {
              lease.grow(Math.floor((sizeBytes * part) / 3));
            } catch {
              // There is no memory for it: it is released twice.
              lease.release();
            }
          }
          return lease;
        });
        assert.ok(limit.totalBytes <= 64 * 1024 * 1024);
        for (const lease of [...leases, ...leases]) lease.release();
        for (const lease of leases) lease.grow(1);
        assert.equal(limit.totalBytes, 0);
      }),
    );
  });
});
