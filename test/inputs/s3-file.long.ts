import assert from 'node:assert/strict';
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { readRange } from '#bytes/byte-source.ts';
import { AppError } from '#errors/app-error.ts';
import type { Reason } from '#errors/catalogue.ts';
import { openS3File, type S3InputSettings } from '#inputs/s3/s3-sources.ts';
import { pemOf } from '#provenance/identity/pem.ts';
import type { S3Bounds, S3Settings } from '#s3/s3-connection.ts';
import { ownAddress } from '../../scripts/own-address.ts';
import { byteSourceContract } from '../bytes/byte-source-contract.ts';
import { HANG_MS } from '../support/jobs/test-jobs.ts';
import { testIdentity } from '../support/manifests/test-identity.ts';
import { expireSockets } from '../support/servers/expire-sockets.ts';
import { type FaultyProxy, startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';

const MIB = 1024 * 1024;
const never = new AbortController().signal;
let s3: TestS3;
let proxy: FaultyProxy;
let bucket: string;

before(async () => {
  s3 = await openTestS3();
  proxy = await startFaultyProxy(s3.place.endpoint);
  bucket = await s3.createBucket();
});
after(async () => {
  await proxy.close();
  await s3.close();
});

byteSourceContract('an object of S3', async (content) => {
  const key = await put(content);
  return { source: await open(key), cleanUp: async () => undefined };
});

describe('opening an object of S3', () => {
  test('finds keys with spaces, percent signs, umlauts, dots and slashes as they are written', async () => {
    for (const key of [
      'a b+c.mp4',
      '100%.mp4',
      'a%20b.mp4',
      'grün/Übung ./ä?x=1#y.mp4',
      '/leading//double.mp4',
      '..a/b..',
    ]) {
      await put(Buffer.from(key), key);
      assert.equal((await contentOf(key)).toString(), key);
    }
  });

  test('finds a key that the caller encoded, and takes the key as it is written where there are both', async () => {
    await put(Buffer.from('spaces'), 'enc/with space.mp4');
    assert.equal((await contentOf('enc/with%20space.mp4')).toString(), 'spaces');
    await put(Buffer.from('percent'), 'enc/with%20space.mp4');
    assert.equal((await contentOf('enc/with%20space.mp4')).toString(), 'percent');
  });

  test('asks for a small object once, and never for its head', async () => {
    const key = await put(randomBytes(MIB));
    proxy.requests.length = 0;
    const source = await open(key, proxied());
    await readRange(source, 0, source.sizeBytes, never);
    await readRange(source, 10, 10, never);
    assert.deepEqual(proxy.requests, [`GET /${bucket}/${key}`]);
  });

  test('reads a large object in order with few requests, whatever the size of the reads', async () => {
    const content = randomBytes(40 * MIB + 1);
    const key = await put(content);
    proxy.requests.length = 0;
    const source = await open(key, proxied());
    const hash = createHash('sha256');
    for (let offset = 0; offset < content.length; offset += 100_000) {
      hash.update(await readRange(source, offset, Math.min(100_000, content.length - offset), never));
    }
    assert.equal(hash.digest('hex'), createHash('sha256').update(content).digest('hex'));
    assert.ok(proxy.requests.length <= 13, `${proxy.requests.length} requests`);
  });

  test('knows the media type that the object claims, unless it says nothing', async () => {
    const [claimed, unknown] = [await put(Buffer.from('x'), undefined, 'video/mp4'), await put(Buffer.from('x'))];
    assert.equal((await open(claimed)).claimedMediaType, 'video/mp4');
    assert.equal((await open(unknown)).claimedMediaType, undefined);
  });

  test('says of what store the object is, with its key and ETag', async () => {
    const key = await put(Buffer.from('x'));
    const [first, second] = [await open(key), await open(key)];
    assert.deepEqual(first.storedAt, second.storedAt);
    assert.equal(first.storedAt?.store, second.storedAt?.store);
    assert.equal(first.storedAt?.key, key);
  });

  test('tells a missing object, a missing bucket and an empty object apart', async () => {
    await refuses('S3_OBJECT_MISSING', s3Url('missing.mp4'));
    await refuses('S3_BUCKET_MISSING', `s3://no-such-bucket-${randomUUID()}/a.mp4`);
    await refuses('SOURCE_EMPTY', s3Url(await put(Buffer.alloc(0))));
  });

  test('tells what the service may not read', async () => {
    const key = await put(Buffer.from('secret'), 'denied/a.mp4');
    const statement = {
      Effect: 'Deny',
      Principal: '*',
      Action: 's3:GetObject',
      Resource: `arn:aws:s3:::${bucket}/denied/*`,
    };
    const policy = JSON.stringify({ Version: '2012-10-17', Statement: [statement] });
    await s3.client.putBucketPolicy({ Bucket: bucket, Policy: policy });
    await refuses('S3_ACCESS_DENIED', s3Url(key));
  });

  test('refuses buckets that are not in the list, and addresses that name no object', async () => {
    const settings = { ...s3.settings, buckets: ['other'] };
    await refuses('S3_BUCKET_REFUSED', s3Url('a.mp4'), settings);
    for (const url of [
      `s3://${bucket}`,
      `s3://${bucket}/`,
      `s3://${bucket}/folder/`,
      's3:///key',
      `s3://${bucket}/a/../b`,
      `s3://${bucket}/./b`,
      `s3://${bucket}/${'k'.repeat(1025)}`,
    ]) {
      await refuses('S3_ADDRESS_INVALID', url);
    }
  });

  test('rejects with the reason of an aborted signal', async () => {
    const reason = new Error('stopped by the test');
    await assert.rejects(
      openS3File(s3Url(await put(Buffer.from('x'))), 'x', s3.settings, AbortSignal.abort(reason)),
      reason,
    );
  });
});

describe('an S3 endpoint that is at fault', () => {
  const answers: readonly {
    readonly what: string;
    readonly status: number;
    readonly code: string;
    readonly reason: Reason;
  }[] = [
    { what: 'an archived object', status: 403, code: 'InvalidObjectState', reason: 'S3_OBJECT_ARCHIVED' },
    { what: 'a bucket of another region', status: 301, code: 'PermanentRedirect', reason: 'S3_REGION_WRONG' },
    {
      what: 'a signature for another region',
      status: 400,
      code: 'AuthorizationHeaderMalformed',
      reason: 'S3_REGION_WRONG',
    },
    { what: 'an unknown access key', status: 403, code: 'InvalidAccessKeyId', reason: 'S3_CREDENTIALS_REFUSED' },
    { what: 'an expired session', status: 400, code: 'ExpiredToken', reason: 'S3_CREDENTIALS_REFUSED' },
    { what: 'a clock that is wrong', status: 403, code: 'RequestTimeTooSkewed', reason: 'S3_CREDENTIALS_REFUSED' },
    { what: 'errors forever', status: 500, code: 'InternalError', reason: 'S3_BUSY' },
    { what: 'a refusal that nobody has heard of', status: 418, code: 'Teapot', reason: 'S3_REQUEST_REFUSED' },
    {
      what: 'a refusal with a name that every object has',
      status: 418,
      code: 'constructor',
      reason: 'S3_REQUEST_REFUSED',
    },
  ];
  for (const { what, status, code, reason } of answers) {
    test(`says so of ${what}`, async () => {
      const key = await put(Buffer.from('x'));
      await withFault(
        () => ({ status, code }),
        () => refuses(reason, s3Url(key), proxied()),
      );
    });
  }

  test('is asked again after an error and after throttling', async () => {
    const key = await put(Buffer.from('content'));
    const faults = [
      { status: 500, code: 'InternalError' },
      { status: 503, code: 'SlowDown' },
    ];
    await withFault(
      () => faults.shift() ?? null,
      async () => assert.equal((await contentOf(key, proxied())).toString(), 'content'),
    );
  });

  test('names the host or port that nothing answers at', async () => {
    const { host, port } = ownAddress();
    const endpoints = [`http://${host}:${port}`, 'http://no-such-host.invalid'];
    for (const endpoint_url of endpoints) {
      await refuses('S3_UNREACHABLE', s3Url('a.mp4'), { ...proxied(), endpoint_url });
    }
  });

  test('goes on where an answer broke off', async () => {
    const content = randomBytes(12 * MIB);
    const key = await put(content);
    let answers = 0;
    await withFault(
      () => (++answers % 2 === 0 ? { cutAfterBytes: 700_000 } : null),
      async () => assert.ok((await contentOf(key, proxied())).equals(content)),
    );
    assert.ok(answers > 4);
  });

  test('goes on where every answer breaks off, however many there are', async () => {
    const content = randomBytes(4 * MIB);
    const key = await put(content);
    await withFault(
      () => ({ cutAfterBytes: 500_000 }),
      async () => assert.ok((await contentOf(key, proxied())).equals(content)),
    );
  });

  test('is given up when its answers break off again and again', async () => {
    const key = await put(randomBytes(3 * MIB));
    await withFault(
      () => ({ cutAfterBytes: 0 }),
      () => refuses('S3_UNREACHABLE', s3Url(key), proxied()),
    );
  });

  test('is gone on with where its answer stalls, and where none comes', async () => {
    const content = randomBytes(3 * MIB);
    const key = await put(content);
    const settings = proxied({ idleTimeoutMs: HANG_MS });
    for (const stall of [{ stallAfterBytes: 700_000 }, { silent: true }] as const) {
      let requests = 0;
      let expired: Promise<void> | undefined;
      await withFault(
        ({ socket }) => {
          requests += 1;
          if (requests !== 2) return null;
          expired = expireSockets(settings, socket.remotePort);
          return stall;
        },
        async () => assert.ok((await contentOf(key, settings)).equals(content)),
      );
      await expired;
      assert.ok(requests > 2);
    }
  });

  test('is left in bounded time when the signal is aborted while it says nothing', async () => {
    const key = await put(randomBytes(3 * MIB));
    const source = await open(key, proxied());
    const reason = new Error('stopped by the test');
    await withFault(
      () => ({ stallAfterBytes: 1000 }),
      async () => {
        const abort = new AbortController();
        const reading = readRange(source, 2 * MIB, 1000, abort.signal);
        const stalled = readRange(source, 2 * MIB, MIB, abort.signal);
        await reading;
        abort.abort(reason);
        await assert.rejects(stalled, reason);
        await source.close();
      },
    );
  });

  test('that answers with pages for people, or with the wrong bytes, is told apart', async () => {
    const key = await put(Buffer.from('x'));
    const range = { etag: '"x"', 'content-range': 'bytes 0-3/4' };
    for (const [reason, answer] of [
      ['S3_BUSY', { status: 502, body: '<html><h1>Bad gateway</h1><br>' }],
      ['S3_ACCESS_DENIED', { status: 403, body: '<html>Forbidden' }],
      ['S3_OBJECT_MISSING', { status: 404, body: 'nothing here' }],
      ['S3_RANGE_REFUSED', { status: 200, body: '<<<' }],
      ['S3_RANGE_REFUSED', { status: 206, body: 'longer than it says', headers: range }],
      ['S3_REQUEST_REFUSED', { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } }],
    ] as const) {
      await withFault(
        () => ({ code: '', ...answer }),
        () => refuses(reason, s3Url(key), proxied()),
      );
    }
  });

  test('whose certificate nobody vouches for is not spoken to', async (context) => {
    const { chain, privateKey } = await testIdentity();
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const server = createServer({ cert: chain.map(pemOf).join(''), key }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    context.after(() => server.close());
    const { port } = server.address() as AddressInfo;
    await refuses('S3_UNREACHABLE', s3Url('a.mp4'), { ...s3.settings, endpoint_url: `https://127.0.0.1:${port}` });
  });

  test('that ignores ranges is no source of media', async () => {
    const key = await put(randomBytes(MIB));
    await withFault(
      () => ({ rangeUnsaid: true }),
      () => refuses('S3_RANGE_REFUSED', s3Url(key), proxied()),
    );
  });
});

describe('an object that changes while it is read', () => {
  test('is asked for by the ETag that was found, and answers are held against it and the range', async () => {
    const content = randomBytes(9 * MIB);
    const key = await put(content);
    const whole = content.length;
    const read = async (answer: object) => {
      const source = await open(key, proxied());
      const etag = source.storedAt?.etag;
      proxy.fault = ({ headers }) => {
        assert.equal(headers['if-match'], etag);
        return { status: 206, code: '', body: 'ten bytes!', headers: { etag, ...answer } as Record<string, string> };
      };
      return await readRange(source, whole - 10, 10, never).finally(() => {
        proxy.fault = () => null;
      });
    };
    const range = `bytes ${whole - 10}-${whole - 1}`;
    assert.equal((await read({ 'content-range': `${range}/${whole}` })).toString(), 'ten bytes!');
    await assert.rejects(read({ 'content-range': `${range}/${whole}`, etag: '"other"' }), isA('SOURCE_CHANGED'));
    await assert.rejects(read({ 'content-range': `${range}/${whole + 1}` }), isA('SOURCE_CHANGED'));
    await assert.rejects(read({ 'content-range': `bytes 0-9/${whole}` }), isA('S3_RANGE_REFUSED'));
  });

  test('is never mixed: the next request finds out', async () => {
    const key = await put(randomBytes(9 * MIB));
    const source = await open(key);
    await put(randomBytes(9 * MIB), key);
    await assert.rejects(readRange(source, 8 * MIB, 10, never), isA('SOURCE_CHANGED'));
  });

  test('is noticed when it is gone', async () => {
    const key = await put(randomBytes(9 * MIB));
    const source = await open(key);
    await s3.client.deleteObject({ Bucket: bucket, Key: key });
    await assert.rejects(readRange(source, 8 * MIB, 10, never), isA('S3_OBJECT_MISSING'));
  });
});

async function put(content: Buffer, key: string = randomUUID(), contentType?: string): Promise<string> {
  await s3.client.putObject({ Bucket: bucket, Key: key, Body: content, ContentType: contentType });
  return key;
}

async function contentOf(key: string, settings?: S3InputSettings): Promise<Buffer> {
  const source = await open(key, settings);
  const content = await readRange(source, 0, source.sizeBytes, never);
  await source.close();
  return content;
}

function open(key: string, settings: S3InputSettings = s3.settings) {
  return openS3File(s3Url(key), 'video.mp4', settings, never);
}

function s3Url(key: string): string {
  return `s3://${bucket}/${key}`;
}

/** Settings that lead past the proxy, with waits shorter than where the service runs. */
function proxied(bounds: Partial<S3Bounds> = {}): S3InputSettings & S3Settings {
  return { ...s3.settings, endpoint_url: proxy.endpoint, bounds: { firstPauseMs: 10, ...bounds } };
}

async function withFault(fault: FaultyProxy['fault'], use: () => Promise<void>): Promise<void> {
  proxy.fault = fault;
  try {
    await use();
  } finally {
    proxy.fault = () => null;
  }
}

async function refuses(reason: Reason, url: string, settings: S3InputSettings = s3.settings): Promise<void> {
  await assert.rejects(openS3File(url, 'video.mp4', settings, never), isA(reason));
}

function isA(reason: Reason): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof AppError, String(error));
    assert.equal(error.reason, reason, error.message);
    return true;
  };
}
