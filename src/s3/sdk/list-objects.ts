import type { S3Address, S3Object } from '../s3-address.ts';
import type { S3Connection } from '../s3-connection.ts';
import { s3Error } from './s3-error.ts';

/** An object as a listing describes it. */
export interface ListedS3Object extends S3Object {
  readonly modifiedAt: Date;
}

/**
 * Lists every object whose key starts with the address's, page by page, in the order of their keys' bytes. Throws the
 * AppErrors of `s3Error`, or the signal's reason.
 */
export async function* listObjects(
  { sdk, client }: S3Connection,
  { bucket, key }: S3Address,
  signal?: AbortSignal,
): AsyncGenerator<ListedS3Object> {
  signal?.throwIfAborted();
  // Keys may hold characters that XML cannot, such as control characters.
  const asked = { Bucket: bucket, Prefix: key, EncodingType: 'url' } as const;
  try {
    for await (const page of sdk.paginateListObjectsV2({ client }, asked, { abortSignal: signal })) {
      for (const { Key = '', Size = 0, ETag = '', LastModified = new Date(0) } of page.Contents ?? []) {
        yield { bucket, key: decodedKey(Key), sizeBytes: Size, etag: ETag, modifiedAt: LastModified };
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw s3Error(error, { bucket, key }, 'list');
  }
}

/** Decodes a key of a listing with the encoding "url": as in the query of a URL, where "+" is a space. */
export function decodedKey(key: string): string {
  return decodeURIComponent(key.replaceAll('+', ' '));
}
