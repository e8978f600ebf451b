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
