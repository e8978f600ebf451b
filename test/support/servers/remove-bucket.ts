import type { S3 } from '@aws-sdk/client-s3';

/** Removes a bucket with its objects and unfinished uploads, whatever its policy denies, and although others still write to it. */
export async function removeBucket(client: S3, bucket: string): Promise<void> {
  await client.deleteBucketPolicy({ Bucket: bucket });
  for (let isEmpty = false; !isEmpty; ) {
    await emptyBucket(client, bucket);
    isEmpty = await client.deleteBucket({ Bucket: bucket }).then(
      () => true,
      (error: Error) => {
        if (error.name === 'BucketNotEmpty') return false;
        throw error;
      },
    );
  }
}

async function emptyBucket(client: S3, bucket: string): Promise<void> {
  for (let truncated = true; truncated; ) {
    const { Contents = [], IsTruncated } = await client.listObjectsV2({ Bucket: bucket });
    for (const { Key } of Contents) await client.deleteObject({ Bucket: bucket, Key });
    truncated = IsTruncated === true;
  }
  const { Uploads = [] } = await client.listMultipartUploads({ Bucket: bucket });
  for (const { Key, UploadId } of Uploads) await client.abortMultipartUpload({ Bucket: bucket, Key, UploadId });
}
