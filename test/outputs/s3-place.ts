import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ScratchSpace } from '#bytes/scratch-space.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import type { ApiOutputSpec } from '#contract/request.ts';
import { S3Sink } from '#outputs/s3-sink.ts';
import { parseS3Url } from '#s3/s3-address.ts';
import type { S3Settings } from '#s3/s3-connection.ts';
import type { TestS3 } from '../support/servers/open-test-s3.ts';
import type { Files } from './publication-files.ts';

export const key: StagingKey = { jobId: '0198c0de-0000-7000-8000-000000000001', inputIndex: 4, attempt: 2 };

/** A sink to a bucket that is shared, below a prefix that nobody else writes to, and all that it may leave behind. */
export interface S3Place {
  readonly sink: S3Sink;
  readonly bucket: string;
  readonly output: ApiOutputSpec;
  readonly dataDir: string;
  readonly scratch: ScratchSpace;
  /** Bytes of everything below a destination by relative path; null for nothing. */
  objectsIn(destination: string): Promise<Files | null>;
  /** The object at a destination; null for none. */
  objectAt(destination: string): Promise<Buffer | null>;
  /** Notes, scratch files and uploads of the prefix that are there still. */
  leftovers(): Promise<readonly string[]>;
  cleanUp(): Promise<void>;
}

export async function openS3Place(
  s3: TestS3,
  bucket: string,
  { readBack, ...given }: { readBack: boolean } & Partial<S3Settings>,
): Promise<S3Place> {
  const folder = await mkdtemp(join(tmpdir(), 'attestream-s3-sink-'));
  const prefix = randomUUID();
  const dataDir = join(folder, 'data');
  const scratchDir = join(folder, 'scratch');
  const settings = {
    ...s3.settings,
    ...given,
    buckets: [bucket],
    base_prefix: 'base',
    naming: 'derived',
  } as const;
  return {
    sink: new S3Sink({ settings, dataDir, readBack }),
    bucket,
    output: { type: 's3', bucket, prefix: `${prefix}/a b+c`, name: 'ü%20' },
    dataDir,
    scratch: new ScratchSpace({ dir: scratchDir, dataDir }, key),
    async objectsIn(destination) {
      const { key: folderKey } = parseS3Url(destination);
      const { Contents = [] } = await s3.client.listObjectsV2({ Bucket: bucket, Prefix: `${folderKey}/` });
      const files: Record<string, string> = {};
      for (const { Key = '' } of Contents) {
        const { Body } = await s3.client.getObject({ Bucket: bucket, Key });
        files[Key.slice(folderKey.length + 1)] = (await Body?.transformToString()) ?? '';
      }
      return Contents.length === 0 ? null : files;
    },
    async objectAt(destination) {
      try {
        const { Body } = await s3.client.getObject({ Bucket: bucket, Key: parseS3Url(destination).key });
        return Buffer.from((await Body?.transformToByteArray()) ?? []);
      } catch (error) {
        if ((error as Error).name === 'NoSuchKey') return null;
        throw error;
      }
    },
    async leftovers() {
      const { Uploads = [] } = await s3.client.listMultipartUploads({ Bucket: bucket, Prefix: `base/${prefix}` });
      const spaces = await readdir(scratchDir).catch(() => []);
      const files = await Promise.all(spaces.map((space) => readdir(join(scratchDir, space))));
      const notes = await readdir(join(dataDir, 'uploads')).catch(() => []);
      return [...Uploads.map(({ Key = '' }) => Key), ...files.flat(), ...notes];
    },
    cleanUp: () => rm(folder, { recursive: true, force: true }),
  };
}
