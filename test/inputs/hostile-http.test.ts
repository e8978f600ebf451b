import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, LookupFunction, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { openHttpFile } from '#inputs/http/http-file.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { answerFor, sendFile, serve } from '../support/servers/http-server.ts';
import { openSmallDisk } from '../support/small-disk.ts';
import { type ClientWishes, clientFor, scratchFor } from './http-client-for-tests.ts';
import { speak } from './speaking-server.ts';

/** Long enough for loopback, short enough to be waited for. */
const IDLE_MS = 300;
const SECRET = 'X-Amz-Signature=hush';
const never = new AbortController().signal;

describe('a server that does not give the file', () => {
  const answers: [string, Reason, number, string?][] = [
    ['has nothing there', 'HTTP_NOT_FOUND', 404],
    ['has it no more', 'HTTP_NOT_FOUND', 410],
    ['forbids it', 'HTTP_FORBIDDEN', 403],
    ['asks for a login', 'HTTP_FORBIDDEN', 401],
    [
      'of S3 says that the URL expired',
      'HTTP_LINK_EXPIRED',
      403,
      '<Code>AccessDenied</Code><Message>Request has expired',
    ],
    ['of Google says that the URL expired', 'HTTP_LINK_EXPIRED', 400, '<Code>ExpiredToken</Code>'],
    ['cannot understand the request', 'HTTP_REFUSED', 400],
    ['fails for ever', 'HTTP_BUSY', 500],
    ['is overloaded for ever', 'HTTP_BUSY', 503],
    ['is a teapot', 'HTTP_REFUSED', 418],
    ['has no content', 'HTTP_REFUSED', 204],
  ];
  for (const [what, reason, status, body] of answers) {
    test(what, (t) => refuses(t, reason, (_request, response) => response.writeHead(status).end(body)));
  }

  test('fails in passing, and is asked again', async (t) => {
    let failures = 3;
    const server = await serve(t, (request, response) => {
      if (failures-- > 0) response.writeHead(503).end();
      else sendFile(request, response, { content: Buffer.from('at last') });
    });
    assert.equal(await contentAt(t, server.base), 'at last');
  });

  test('is not there', async (t) => {
    const { host, port } = ownAddress();
    await refusesAt(t, 'HTTP_UNREACHABLE', `http://${host}:${port}`);
  });

  test('is a name that nobody knows', async (t) => {
    const lookup: LookupFunction = (hostname, _options, callback) =>
      callback(Object.assign(new Error('not found'), { code: 'ENOTFOUND', syscall: 'getaddrinfo', hostname }), '');
    await refusesAt(t, 'HTTP_HOST_UNKNOWN', 'http://media.invalid', { lookup });
  });

  test('never answers', (t) => refuses(t, 'HTTP_TIMED_OUT', () => undefined, { idleTimeoutMs: IDLE_MS }));

  test('speaks something else', async (t) => {
    const port = await speak(t, (socket) => socket.end('220 mail.invalid ESMTP\r\n'));
    await refusesAt(t, 'HTTP_ANSWER_INVALID', `http://127.0.0.1:${port}`);
  });

  test('speaks no TLS', async (t) => {
    const server = await serve(t, () => undefined);
    await refusesAt(t, 'HTTP_ANSWER_INVALID', `https://127.0.0.1:${server.port}`);
  });

  test('gives a byte at a time', (t) =>
    refuses(t, 'HTTP_CUT_SHORT', (request, response) =>
      sendFile(request, response, { content: Buffer.alloc(100_000), largestPart: 1 }),
    ));

  test('has a certificate that nobody vouches for', async (t) => {
    const { base } = await serveTls(t, (_request, response) => response.end('x'));
    await refusesAt(t, 'HTTP_CERTIFICATE_REFUSED', base);
  });
});

describe('a server that redirects', () => {
  test('is followed five times, and no further', async (t) => {
    const server = await serve(t, (request, response) => {
      const left = Number(/^\/(\d+)/.exec(request.url ?? '')?.[1]);
      if (left === 0) sendFile(request, response, { content: Buffer.from('found') });
      else response.writeHead(left % 2 === 0 ? 307 : 302, { location: `/${left - 1}?${SECRET}` }).end();
    });
    assert.equal(await contentAt(t, `${server.base}/5`), 'found');
    await refusesAt(t, 'HTTP_REDIRECTS_ENDLESS', `${server.base}/6`);
  });

  test('in a circle is left', (t) =>
    refuses(t, 'HTTP_REDIRECTS_ENDLESS', (_request, response) => response.writeHead(302, { location: '/' }).end()));

  test('to what no request may name is not followed', async (t) => {
    for (const location of [
      'file:///etc/passwd',
      'ftp://host/a.mp4',
      `s3://bucket/a.mp4?${SECRET}`,
      'http://user:hush@127.0.0.1/',
      'http://[',
    ]) {
      await refuses(t, 'HTTP_REDIRECT_REFUSED', (_request, response) => response.writeHead(302, { location }).end());
    }
  });

  test('to a denied address gets nothing from it', async (t) => {
    for (const host of [
      '169.254.169.254',
      '[::ffff:169.254.169.254]',
      '[fe80::1]',
      '[64:ff9b::a9fe:a9fe]',
      '2852039166',
    ]) {
      const location = `http://${host}/latest/meta-data/`;
      await refuses(t, 'HTTP_ADDRESS_DENIED', (_request, response) => response.writeHead(302, { location }).end());
    }
    const other = await serve(t, (_request, response) => response.end('secret of this host'));
    const location = `http://127.0.0.2:${other.port}/`;
    await refuses(t, 'HTTP_ADDRESS_DENIED', (_request, response) => response.writeHead(302, { location }).end(), {
      denied: ['127.0.0.2'],
    });
    assert.deepEqual(other.seen, []);
  });
});

describe('addresses that are denied', () => {
  test('are not connected to, whether they are named or resolved', async (t) => {
    const server = await serve(t, (_request, response) => response.end('secret'));
    const denied = ['127.0.0.0/8', '::1/128'];
    const lookup = resolvingTo('127.0.0.1', '::1');
    for (const host of [
      '127.0.0.1',
      '127.1',
      '0x7f000001',
      '0.0.0.0',
      '[::ffff:127.0.0.1]',
      '[::1]',
      '[::]',
      'name.invalid',
    ]) {
      await refusesAt(t, 'HTTP_ADDRESS_DENIED', `http://${host}:${server.port}`, { denied, lookup });
    }
    assert.equal(server.connections.size, 0);
  });

  test('are left out where a name has others too', async (t) => {
    const server = await serve(t, (request, response) => sendFile(request, response, { content: Buffer.from('ok') }));
    const lookup = resolvingTo('127.0.0.2', '127.0.0.1');
    const url = `http://name.invalid:${server.port}`;
    assert.equal(await contentAt(t, url, { denied: ['127.0.0.2'], lookup }), 'ok');
  });

  test('gain nothing where the name resolves to another one each time it is asked for', async (t) => {
    const content = Buffer.alloc(9 * 1024 * 1024, 'a');
    const server = await serve(t, (request, response) => {
      response.setHeader('connection', 'close'); // Every request has the name resolved again.
      sendFile(request, response, { content });
    });
    const answers = ['127.0.0.1', '127.0.0.2'];
    let resolutions = 0;
    const lookup: LookupFunction = (name, options, callback) =>
      resolvingTo(answers[resolutions++ % 2] as string)(name, options, callback);
    const source = await openAt(t, `http://name.invalid:${server.port}`, { denied: ['127.0.0.2'], lookup });
    await assert.rejects(readRange(source, 4 * 1024 * 1024, 10, never), { reason: 'HTTP_ADDRESS_DENIED' });
    assert.ok(resolutions >= 2);
    assert.equal(server.seen.length, 1, 'the second address saw no request');
  });
});

describe('a body that is not what was promised', () => {
  test('is packed', async (t) => {
    for (const encoding of ['gzip', 'br', 'GZIP', 'identity, gzip', 'aws-chunked, gzip', 'x-unknown']) {
      await refuses(t, 'HTTP_ENCODED', (request, response) =>
        sendFile(request, response, { content: Buffer.from('x'), headers: { 'content-encoding': encoding } }),
      );
    }
  });

  test('is shorter than its length, every time', async (t) => {
    const content = Buffer.alloc(100_000);
    for (const ranges of [true, false]) {
      await refuses(t, 'HTTP_CUT_SHORT', (request, response) => {
        const { status, headers, part } = answerFor(request, { content, ranges });
        response.writeHead(status, headers);
        response.write(part.subarray(0, part.length / 2), () => response.destroy());
      });
    }
  });

  test('is longer than its length', async (t) => {
    const port = await speak(t, (socket) =>
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n${'x'.repeat(1000)}`);
      }),
    );
    await refusesAt(t, 'HTTP_ANSWER_INVALID', `http://127.0.0.1:${port}`);
  });

  test('is longer than its range', async (t) => {
    const port = await speak(t, (socket) =>
      socket.once('data', () => {
        const head =
          'HTTP/1.1 206 OK\r\netag: "1"\r\ncontent-range: bytes 0-9/10\r\ntransfer-encoding: chunked\r\n\r\n';
        socket.write(`${head}14\r\n${'x'.repeat(20)}\r\n0\r\n\r\n`);
      }),
    );
    await refusesAt(t, 'HTTP_ANSWER_INVALID', `http://127.0.0.1:${port}`);
  });

  test('is of another range than was asked for', async (t) => {
    for (const range of [
      'bytes 5-9/100',
      'bytes 0-9/5',
      'bytes 0-99999999/100000000',
      'bytes 5-9/*',
      'lines 0-9/10',
      'x',
    ]) {
      await refuses(t, 'HTTP_ANSWER_INVALID', (_request, response) =>
        response.writeHead(206, { 'content-range': range, etag: '"1"' }).end('0123456789'),
      );
    }
  });

  test('never ends', async (t) => {
    const chunk = Buffer.alloc(1024 * 1024);
    const pour: RequestListener = (_request, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
    };
    await refuses(t, 'HTTP_TOO_LARGE', pour, { maxBytes: 20 * 1024 * 1024 });
    const disk = await openSmallDisk(80 * 1024 * 1024);
    t.after(() => disk.cleanUp());
    const server = await serve(t, pour);
    await refusesAt(t, 'SCRATCH_FULL', server.base, {}, disk.path);
    assert.equal(readdirSync(disk.path, { recursive: true }).length, 1, 'nothing is left but the folder');
  });

  test('is larger than may be read, by what its headers say', async (t) => {
    const content = Buffer.alloc(1000);
    for (const ranges of [true, false]) {
      const server = await serve(t, (request, response) => sendFile(request, response, { content, ranges }));
      await refusesAt(t, 'HTTP_TOO_LARGE', server.base, { maxBytes: 999 });
    }
  });

  test('stops coming, or comes by the drop', async (t) => {
    for (const ranges of [true, false]) {
      for (const dripping of [true, false]) {
        const listener: RequestListener = (request, response) => {
          const { status, headers, part } = answerFor(request, { content: Buffer.alloc(200_000), ranges });
          response.writeHead(status, headers);
          response.write(part.subarray(0, 1));
          const drip = setInterval(() => dripping && response.write('x'), 20);
          response.on('close', () => clearInterval(drip));
        };
        await refuses(t, 'HTTP_TIMED_OUT', listener, { idleTimeoutMs: IDLE_MS });
      }
    }
  });

  test('is headed by more than anybody needs', (t) =>
    refuses(t, 'HTTP_ANSWER_INVALID', (_request, response) => {
      response.writeHead(200, { 'x-large': 'x'.repeat(100_000) }).end('x');
    }));
});

/** The reason of what goes wrong when the file is opened and read whole; its message and details hold no secret. */
async function refuses(t: TestContext, reason: Reason, listener: RequestListener, wishes: ClientWishes = {}) {
  const server = await serve(t, listener);
  await refusesAt(t, reason, server.base, wishes);
  while (server.connections.size > 0) {
    for (const socket of server.connections) if (socket.readyState !== 'open') socket.destroy();
    if (await isIdle(server.connections)) break;
  }
}

/** Returns true where the open connections are idle and kept for a next request. */
async function isIdle(connections: ReadonlySet<Socket>): Promise<boolean> {
  await new Promise((resolve) => setImmediate(resolve));
  return [...connections].every((socket) => socket.readyState === 'open' && !socket.writableNeedDrain);
}

async function refusesAt(
  t: TestContext,
  reason: Reason,
  base: string,
  wishes: ClientWishes = {},
  scratchDir?: string,
): Promise<void> {
  await assert.rejects(contentAt(t, base, wishes, scratchDir), (error) => {
    assert.ok(error instanceof AppError, `${base}: ${error instanceof Error ? error.stack : error}`);
    assert.equal(error.reason, reason, `${base}: ${error.message}`);
    assert.doesNotMatch(error.message + JSON.stringify(error.toData()), /hush/);
    return true;
  });
}

async function contentAt(
  t: TestContext,
  base: string,
  wishes: ClientWishes = {},
  scratchDir?: string,
): Promise<string> {
  const source = await openAt(t, base, wishes, scratchDir);
  try {
    const bytes = await readRange(source, 0, source.sizeBytes, never);
    await source.checkUnchanged?.(never);
    return bytes.toString();
  } finally {
    await source.close();
  }
}

async function openAt(t: TestContext, base: string, wishes: ClientWishes = {}, scratchDir?: string) {
  const key = { jobId: 'job', inputIndex: 0, attempt: 1 };
  const scratch =
    scratchDir === undefined
      ? (await scratchFor(t)).scratch
      : new ScratchSpace({ dir: scratchDir, dataDir: '/data' }, key);
  const url = new URL(`${base}${new URL(base).pathname === '/' ? '/a.mp4' : ''}?${SECRET}`);
  return await openHttpFile(clientFor(t, wishes), { url, nameOf: () => 'a.mp4', signal: never, scratch });
}

function resolvingTo(...addresses: string[]): LookupFunction {
  const resolved = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_hostname, _options, callback) => queueMicrotask(() => callback(null, resolved));
}

async function serveTls(t: TestContext, listener: RequestListener): Promise<{ base: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'attestream-tls-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = `req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost -keyout ${key} -out ${cert}`;
  execFileSync('openssl', made.split(' '), { stdio: 'pipe' });
  const server = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, listener).listen(0, '127.0.0.1');
  rmSync(folder, { recursive: true });
  server.on('tlsClientError', () => undefined);
  await once(server, 'listening');
  t.after(() => server.close());
  return { base: `https://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
