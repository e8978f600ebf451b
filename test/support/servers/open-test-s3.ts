import { randomUUID } from 'node:crypto';
import { S3 } from '@aws-sdk/client-s3';
import type { S3Settings } from '#s3/s3-connection.ts';
import { type S3Place, startS3Server } from '../../../scripts/s3-server.ts';
import { removeBucket } from './remove-bucket.ts';

/** A real S3 server, with buckets that nobody else uses. */
export interface TestS3 {
  readonly place: S3Place;
  /** The configuration of the code under test. The credentials are in the environment of this process. */
  readonly settings: S3Settings;
  /** A client for what a test prepares and looks at. */
  readonly client: S3;
  /** Makes a bucket of a new name, which goes away with everything in it when the server is closed. */
  createBucket(): Promise<string>;
  close(): Promise<void>;
}

/** The variable that holds, as JSON, the place of the server that all test files of a run share (`global-setup.ts`). */
export const SHARED_S3 = 'ATTESTREAM_TEST_S3';

/**
 * Opens the S3 server that `S3_TEST_ENDPOINT` names, with the credentials in `S3_TEST_ACCESS_KEY_ID` and
 * `S3_TEST_SECRET_ACCESS_KEY` and the region in `S3_TEST_REGION` (us-east-1); otherwise the one that all test files share,
 * or, for a file that runs alone, starts one.
 */
export async function openTestS3(): Promise<TestS3> {
  const given = givenPlace(process.env);
  const shared = sharedPlace(process.env);
  const server = given === null && shared === null ? await startS3Server() : null;
  const { endpoint, region, accessKeyId, secretAccessKey } = (given ?? shared ?? server) as S3Place;
  process.env['AWS_ACCESS_KEY_ID'] = accessKeyId;
  process.env['AWS_SECRET_ACCESS_KEY'] = secretAccessKey;
  const client = new S3({ endpoint, region, forcePathStyle: true });
  const buckets: string[] = [];
  return {
    place: { endpoint, region, accessKeyId, secretAccessKey },
    settings: { endpoint_url: endpoint, region, force_path_style: true },
    client,
    async createBucket() {
      const bucket = `attestream-test-${randomUUID()}`;
      await client.createBucket({ Bucket: bucket });
      buckets.push(bucket);
      return bucket;
    },
    async close() {
      // A server of our own goes away with all that it holds, in memory.
      if (server === null) for (const bucket of buckets) await removeBucket(client, bucket);
      await server?.stop();
      client.destroy();
    },
  };
}

function sharedPlace(env: NodeJS.ProcessEnv): S3Place | null {
  const place = env[SHARED_S3];
  return place === undefined ? null : (JSON.parse(place) as S3Place);
}

function givenPlace(env: NodeJS.ProcessEnv): S3Place | null {
  const endpoint = env['S3_TEST_ENDPOINT'];
  if (endpoint === undefined) return null;
  const accessKeyId = env['S3_TEST_ACCESS_KEY_ID'];
  const secretAccessKey = env['S3_TEST_SECRET_ACCESS_KEY'];
  if (accessKeyId === undefined || secretAccessKey === undefined) {
    throw new Error('With S3_TEST_ENDPOINT, set S3_TEST_ACCESS_KEY_ID and S3_TEST_SECRET_ACCESS_KEY too.');
  }
  return { endpoint, region: env['S3_TEST_REGION'] ?? 'us-east-1', accessKeyId, secretAccessKey };
}
