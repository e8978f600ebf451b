import type { S3 } from '@aws-sdk/client-s3';

/** Removes a bucket with its objects and unfinished uploads, whatever its policy denies. */
export async function removeBucket(client: S3, bucket: string): Promise<void> {
  await client.deleteBucketPolicy({ Bucket: bucket });
  for (let truncated = true; truncated; ) {
    const { Contents = [], IsTruncated } = await client.listObjectsV2({ Bucket: bucket });
    for (const { Key } of Contents) await client.deleteObject({ Bucket: bucket, Key });
    truncated = IsTruncated === true;
  }
  const { Uploads = [] } = await client.listMultipartUploads({ Bucket: bucket });
  for (const { Key, UploadId } of Uploads) await client.abortMultipartUpload({ Bucket: bucket, Key, UploadId });
  await client.deleteBucket({ Bucket: bucket });
}
