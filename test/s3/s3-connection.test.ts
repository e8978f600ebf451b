import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { AppError } from '#errors/app-error.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { s3Retry } from '#s3/sdk/s3-error.ts';
import { startFaultyProxy } from '../support/servers/faulty-s3-proxy.ts';
import { openTestS3, type TestS3 } from '../support/servers/open-test-s3.ts';

let s3: TestS3;

before(async () => {
  s3 = await openTestS3();
});
after(() => s3.close());

describe('a connection to S3', () => {
  test('writes, reads and lists with the settings of the configuration', async () => {
    const bucket = await s3.createBucket();
    const { sdk, client } = await connectS3(s3.settings);
    await client.send(new sdk.PutObjectCommand({ Bucket: bucket, Key: 'a b/ü%20#?+.mp4', Body: 'content' }));
    const { Contents } = await client.send(new sdk.ListObjectsV2Command({ Bucket: bucket }));
    assert.deepEqual(
      Contents?.map(({ Key }) => Key),
      ['a b/ü%20#?+.mp4'],
    );
    const { Body } = await client.send(new sdk.GetObjectCommand({ Bucket: bucket, Key: 'a b/ü%20#?+.mp4' }));
    assert.equal(await Body?.transformToString(), 'content');
  });

  test('has bodies checked on their way by their SHA-256, and signs that', async () => {
    const proxy = await startFaultyProxy(s3.place.endpoint);
    const heads: IncomingHttpHeaders[] = [];
    proxy.fault = ({ headers }) => {
      heads.push(headers);
      return null;
    };
    const bucket = await s3.createBucket();
    const { sdk, client } = await connectS3({ ...s3.settings, endpoint_url: proxy.endpoint });
    await client.send(new sdk.PutObjectCommand({ Bucket: bucket, Key: 'a', Body: Buffer.from('content') }));
    await proxy.close();
    assert.equal(heads[0]?.['x-amz-content-sha256'], hash('sha256', 'content'));
    assert.match(heads[0]?.authorization ?? '', /x-amz-content-sha256/);
  });

  test('takes any region for an endpoint of its own, and asks for one where there is none', async () => {
    const { region: _, ...settings } = s3.settings;
    const { client } = await connectS3(settings);
    assert.equal(await client.config.region(), 'us-east-1');
    await assert.rejects(
      connectS3({ force_path_style: false }),
      (error) => error instanceof AppError && error.reason === 'S3_REGION_MISSING',
    );
  });

  test('takes credentials and region from the profile that is configured', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'attestream-s3-profile-'));
    context.after(() => rm(folder, { recursive: true }));
    const { accessKeyId, secretAccessKey, endpoint } = s3.place;
    const credentials = join(folder, 'credentials');
    await writeFile(
      credentials,
      `[media]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\nregion = eu-north-1\n`,
    );
    const program = `
      const { connectS3 } = await import('#s3/s3-connection.ts');
      const { sdk, client } = await connectS3(${JSON.stringify({ profile: 'media', endpoint_url: endpoint, force_path_style: true })});
      await client.send(new sdk.ListBucketsCommand({}));
      console.log(await client.config.region());`;
    const { AWS_ACCESS_KEY_ID: _, AWS_SECRET_ACCESS_KEY: __, AWS_REGION: ___, ...env } = process.env;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
      env: { ...env, AWS_SHARED_CREDENTIALS_FILE: credentials, AWS_CONFIG_FILE: join(folder, 'none') },
    });
    assert.equal(stdout.trim(), 'eu-north-1', stderr);
  });

  test('is one and the same for equal settings', async () => {
    assert.equal(await connectS3(s3.settings), await connectS3({ ...s3.settings }));
    assert.notEqual(await connectS3(s3.settings), await connectS3({ ...s3.settings, region: 'eu-central-1' }));
  });
});

type Failure = Parameters<ReturnType<typeof s3Retry>['refreshRetryTokenForRetry']>[1];

/** The pauses that are made before a request which fails again and again is given up. */
async function pausesFor(failure: Failure): Promise<number[]> {
  const strategy = s3Retry();
  const pauses: number[] = [];
  let token = await strategy.acquireInitialRetryToken('');
  for (;;) {
    try {
      token = await strategy.refreshRetryTokenForRetry(token, failure);
    } catch {
      return pauses;
    }
    pauses.push(token.getRetryDelay());
  }
}

function sumOf(pauses: readonly number[]): number {
  return pauses.reduce((sum, pause) => sum + pause, 0);
}

function answered(status: number, name: string): NonNullable<Failure['error']> {
  const error = new Error(name) as NonNullable<Failure['error']>;
  return Object.assign(error, { name, $metadata: { httpStatusCode: status } });
}

describe('a request to S3 that fails', () => {
  for (const [what, failure] of [
    ['is slowed down', { errorType: 'THROTTLING', error: answered(503, 'SlowDown') }],
    ['finds the server busy', { errorType: 'TRANSIENT', error: answered(503, 'ServiceUnavailable') }],
    ['conflicts with another one', { errorType: 'CLIENT_ERROR', error: answered(409, 'OperationAborted') }],
  ] as const) {
    test(`is made again for many seconds, and not for ever, where it ${what}`, async () => {
      const pauses = await pausesFor(failure);
      assert.ok(sumOf(pauses) > 8_000 && sumOf(pauses) < 40_000, String(pauses));
    });
  }

  test('is made again a few times where the server fails or the connection does', async () => {
    const failures: Failure[] = [
      { errorType: 'TRANSIENT', error: answered(500, 'InternalError') },
      { errorType: 'SERVER_ERROR', error: answered(501, 'NotImplemented') },
      { errorType: 'TRANSIENT' },
    ];
    for (const failure of failures) assert.equal((await pausesFor(failure)).length, 4);
  });

  test('is not made again where it is at fault itself', async () => {
    assert.deepEqual(await pausesFor({ errorType: 'CLIENT_ERROR', error: answered(403, 'AccessDenied') }), []);
  });

  test('waits as long as the server asks for, within bounds', async () => {
    const inSeconds = (seconds: number): Failure => ({
      errorType: 'THROTTLING',
      retryAfterHint: new Date(Date.now() + seconds * 1000),
    });
    const [pause = 0] = await pausesFor(inSeconds(10));
    assert.ok(pause > 5_000, `${pause} ms`);
    for (const longest of await pausesFor(inSeconds(86_400))) assert.ok(longest <= 20_000, `${longest} ms`);
  });
});
