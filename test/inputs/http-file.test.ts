import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { type ByteSource, readRange } from '#bytes/byte-source.ts';
import { type HttpFileRequest, httpFileOpener, openHttpFile } from '#inputs/http/http-file.ts';
import { byteSourceContract } from '../bytes/byte-source-contract.ts';
import { answerFor, type ServedFile, sendFile, serve, startServer } from '../support/servers/http-server.ts';
import { type ClientWishes, clientFor, newClient, newScratch, scratchFor } from './http-client-for-tests.ts';

const never = new AbortController().signal;
const LARGE = randomBytes(9 * 1024 * 1024 + 5);
const MONDAY = 'Mon, 16 Nov 2026 12:00:00 GMT';

const manners: Readonly<Record<string, Omit<ServedFile, 'content'>>> = {
  'over HTTP, with ranges and an ETag': {},
  'over HTTP, with ranges and a time of change': { etag: null, lastModified: MONDAY },
  'over HTTP, from a server that takes no If-Range': { etag: 'W/"1"', lastModified: MONDAY, ifRange: false },
  'over HTTP, with ranges of nobody knows which version': { etag: null },
  'over HTTP, with ranges and a weak ETag': { etag: 'W/"1"' },
  'over HTTP, from a server that gives less than was asked for': { largestPart: 100_000 },
  'over HTTP, with ranges of nobody knows how much': { wholeSize: false },
  'over HTTP, with ranges of nobody knows how much, and no length': { wholeSize: false, length: false },
  'over HTTP, without ranges': { ranges: false },
  'over HTTP, without ranges or a length': { ranges: false, length: false },
};
for (const [what, manner] of Object.entries(manners)) {
  byteSourceContract(`a file ${what}`, async (content) => {
    const server = await startServer((request, response) => sendFile(request, response, { content, ...manner }));
    const [client, { scratch, remove }] = [newClient(), await newScratch()];
    const source = await openHttpFile(client, {
      url: new URL(`${server.base}/clip.mp4`),
      nameOf: () => 'clip.mp4',
      signal: never,
      scratch,
    });
    return {
      source,
      cleanUp: async () => {
        await client.close();
        await server.close();
        await remove();
      },
    };
  });
}

/** The files in the spaces of a scratch folder, without those that tell the reserved bytes. */
function mediaIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((path) => /\/[^.][^/]*$/.test(path));
}

describe('a file over HTTP', () => {
  test('is asked for with ranges from the first request on, by GET alone, its query unchanged', async (t) => {
    const server = await serve(t, (request, response) => sendFile(request, response, { content: LARGE }));
    const source = await open(t, `${server.base}/a%20b/clip.mp4?X-Amz-Signature=a%2Fb&x=1#t=3`);
    await readWhole(source);
    assert.deepEqual(new Set(server.seen.map(({ method }) => method)), new Set(['GET']));
    assert.deepEqual(
      new Set(server.seen.map(({ path }) => path)),
      new Set(['/a%20b/clip.mp4?X-Amz-Signature=a%2Fb&x=1']),
    );
    assert.ok(server.seen.every(({ range }) => range !== undefined));
    assert.ok(server.seen.length < 10, 'neighbours share a request');
  });

  test('is as it is with the encoding of uploads in pieces, which stores of objects record', async (t) => {
    for (const encoding of ['aws-chunked', 'identity, aws-chunked', '']) {
      const { base } = await serve(t, (request, response) =>
        sendFile(request, response, { content: Buffer.from('abc'), headers: { 'content-encoding': encoding } }),
      );
      assert.equal((await readWhole(await open(t, `${base}/a.mp4`))).toString(), 'abc', encoding);
    }
  });

  test('that is small takes one request', async (t) => {
    const server = await serve(t, (request, response) =>
      sendFile(request, response, { content: Buffer.from('small') }),
    );
    const source = await open(t, `${server.base}/small.mp4`);
    assert.equal((await readWhole(source)).toString(), 'small');
    assert.equal(server.seen.length, 1);
  });

  test('writes nothing to this host where there are ranges, and lies there while it is open where there are none', async (t) => {
    const server = await serve(t, (request, response) =>
      sendFile(request, response, { content: LARGE, ranges: request.url !== '/no-ranges' }),
    );
    const { scratch, dir } = await scratchFor(t);
    const ranged = await open(t, `${server.base}/ranges`, { scratch });
    await readWhole(ranged);
    assert.equal(ranged.localPath, undefined);
    assert.deepEqual(readdirSync(dir), []);

    const spooled = await open(t, `${server.base}/no-ranges`, { scratch });
    assert.equal(spooled.localPath?.startsWith(dir), true);
    assert.equal(mediaIn(dir).length, 1);
    await spooled.close();
    assert.equal(mediaIn(dir).length, 0);
  });

  test('is taken up again where its connection was lost, wherever that was', async (t) => {
    for (const droppedAt of [1, 1_500_000, 5_000_001]) {
      let drops = 3;
      const server = await serve(t, (request, response) => {
        const { status, headers, part } = answerFor(request, { content: LARGE });
        response.writeHead(status, headers);
        if (drops === 0 || part.length < droppedAt) {
          response.end(part);
        } else {
          drops -= 1;
          response.write(part.subarray(0, droppedAt), () => response.destroy());
        }
      });
      const source = await open(t, `${server.base}/clip.mp4`);
      assert.ok((await readWhole(source)).equals(LARGE), `dropped at ${droppedAt}`);
    }
  });

  test('without ranges is fetched from its beginning again when its connection was lost', async (t) => {
    let drops = 2;
    const server = await serve(t, (request, response) => {
      const { status, headers, part } = answerFor(request, { content: LARGE, ranges: false });
      response.writeHead(status, headers);
      if (drops-- > 0) response.write(part.subarray(0, 3_000_000), () => response.destroy());
      else response.end(part);
    });
    const { scratch, dir } = await scratchFor(t);
    const source = await open(t, `${server.base}/clip.mp4`, { scratch });
    assert.ok((await readWhole(source)).equals(LARGE));
    assert.equal(mediaIn(dir).length, 1, 'nothing of the attempts before is left');
  });

  test('that changes while it is read is an error, by its ETag, its time of change, or its size', async (t) => {
    const changes: [ServedFile, ServedFile][] = [
      [{ content: LARGE }, { content: Buffer.alloc(LARGE.length), etag: '"2"' }],
      [
        { content: LARGE, etag: null, lastModified: MONDAY },
        { content: LARGE, etag: null, lastModified: 'Mon, 16 Nov 2026 12:00:01 GMT' },
      ],
      [
        { content: LARGE, ifRange: false },
        { content: LARGE, etag: '"2"', ifRange: false },
      ],
      [{ content: LARGE }, { content: LARGE.subarray(1) }],
      [{ content: LARGE }, { content: Buffer.from('short now'), etag: '"2"' }],
      [{ content: LARGE }, { content: Buffer.from('short now'), ifRange: false }],
    ];
    for (const [before, after] of changes) {
      let current = before;
      const server = await serve(t, (request, response) => sendFile(request, response, current));
      const source = await open(t, `${server.base}/clip.mp4`);
      current = after;
      await assert.rejects(readWhole(source), { reason: 'SOURCE_CHANGED' });
    }
  });

  test('that is empty is refused, with ranges and without', async (t) => {
    for (const ranges of [true, false]) {
      const server = await serve(t, (request, response) => {
        sendFile(request, response, { content: Buffer.alloc(0), ranges });
      });
      const opening = httpFileOpener(clientFor(t))(
        { type: 'remote_file_url', url: `${server.base}/empty.mp4?secret` },
        0,
        { signal: never, scratch: (await scratchFor(t)).scratch },
      );
      await assert.rejects(opening, { reason: 'SOURCE_EMPTY' });
    }
  });

  test('is named by the hint, then by the server, then by the address', async (t) => {
    const server = await serve(t, (request, response) => {
      const name = new URL(request.url ?? '', 'http://x').searchParams.get('as');
      const headers = name === null ? {} : { 'content-disposition': name };
      sendFile(request, response, {
        content: Buffer.from('x'),
        headers: { 'content-type': 'Video/MP4; x=y', ...headers },
      });
    });
    const nameOf = async (query: string, filename_hint?: string) => {
      const input = { type: 'remote_file_url', url: `${server.base}/a/b%20c.mp4${query}`, filename_hint } as const;
      const source = await httpFileOpener(clientFor(t))(input, 7, { signal: never, ...(await scratchFor(t)) });
      t.after(() => source.close());
      assert.equal(source.claimedMediaType, 'video/mp4');
      return source.name;
    };
    assert.equal(await nameOf(''), 'b c.mp4');
    assert.equal(await nameOf('', 'hint.mov'), 'hint.mov');
    assert.equal(await nameOf('?as=attachment; filename="../served.mp4"'), 'served.mp4');
    assert.equal(await nameOf('?as=attachment; filename="served.mp4"', 'hint.mov'), 'hint.mov');
    assert.equal(await nameOf(`?as=${encodeURIComponent("inline; filename*=UTF-8''%C3%A9t%C3%A9.mp4")}`), 'été.mp4');
    assert.equal(await nameOf('?as=attachment; filename=".."'), 'b c.mp4');
  });

  test('gives its connections back when it is closed, or when nobody waits any more', async (t) => {
    const server = await serve(t, (request, response) => {
      const { status, headers, part } = answerFor(request, { content: Buffer.alloc(200 * 1024 * 1024) });
      response.writeHead(status, headers);
      response.write(part.subarray(0, part.length - 1)); // The last byte never comes.
    });
    const stop = new AbortController();
    const opening = open(t, `${server.base}/clip.mp4`, { signal: stop.signal });
    while (server.connections.size === 0) await new Promise((resolve) => setImmediate(resolve));
    stop.abort(new Error('stopped by the test'));
    await assert.rejects(opening, { message: 'stopped by the test' });
    while (server.connections.size > 0) await new Promise((resolve) => setImmediate(resolve));
  });
});

async function open(
  t: TestContext,
  url: string,
  { client, ...wishes }: Partial<HttpFileRequest> & { client?: ClientWishes } = {},
): Promise<ByteSource> {
  const { scratch } = wishes.scratch === undefined ? await scratchFor(t) : { scratch: wishes.scratch };
  const request = { nameOf: () => 'clip.mp4', signal: never, ...wishes, url: new URL(url), scratch };
  const source = await openHttpFile(clientFor(t, client), request);
  t.after(() => source.close());
  return source;
}

async function readWhole(source: ByteSource): Promise<Buffer> {
  const chunks: Buffer[] = [];
  const chunkBytes = 1024 * 1024;
  for (let offset = 0; offset < source.sizeBytes; offset += chunkBytes) {
    chunks.push(await readRange(source, offset, Math.min(chunkBytes, source.sizeBytes - offset), never));
  }
  return Buffer.concat(chunks);
}
