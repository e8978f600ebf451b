import { isBucketName } from '#config/bucket-name.ts';
import { AppError, type ErrorLocation } from '#errors/app-error.ts';

/** A place in S3: an object by its key, or all objects whose keys start with it. */
export interface S3Address {
  readonly bucket: string;
  /** As S3 knows it, not encoded; empty for the whole bucket. */
  readonly key: string;
}

const SCHEME = /^s3:\/\//i;

/** The longest key of S3, in bytes of UTF-8. */
const LONGEST_KEY_BYTES = 1024;

/** Whether an address is one of S3. */
export function isS3Url(url: string): boolean {
  return SCHEME.test(url);
}

/**
 * Reads `s3://bucket/key`. The key is taken as it is written, with spaces, "%", "?" and "#" in it: that is how the AWS
 * console and its command line write these addresses, which are no URLs in the sense of RFC 3986.
 */
export function parseS3Url(url: string, location: ErrorLocation = {}): S3Address {
  const [bucket = '', ...rest] = url.replace(SCHEME, '').split('/');
  const key = rest.join('/');
  const problem = problemOf(bucket, key);
  if (problem !== null) throw new AppError('S3_ADDRESS_INVALID', { problem }, location);
  return { bucket, key };
}

/** The same address with its key decoded once, for callers who encode it; null where that changes nothing. */
export function decodedS3Address({ bucket, key }: S3Address): S3Address | null {
  try {
    const decoded = decodeURIComponent(key);
    return decoded === key || problemOf(bucket, decoded) !== null ? null : { bucket, key: decoded };
  } catch {
    // A percent sign that starts no escape: the key is meant as it is written.
    return null;
  }
}

/** Where inputs may be read from: the part of `input_resolvers.s3` that says so. */
export interface S3InputPolicy {
  /** Absent: from every bucket that the service's credentials may read. */
  readonly buckets?: readonly string[];
}

/**
 * The place that an input's address names, where the policy lets it be read; undefined for a policy: nothing may be.
 * `location` is where the address stands in a request.
 */
export function admittedS3Address(
  url: string,
  policy: S3InputPolicy | undefined,
  location: ErrorLocation = {},
): S3Address {
  if (policy === undefined) throw new AppError('S3_INPUTS_OFF', {}, location);
  const address = parseS3Url(url, location);
  const { bucket } = address;
  if (policy.buckets?.includes(bucket) === false) throw new AppError('S3_BUCKET_REFUSED', { bucket }, location);
  return address;
}

/** The same for an input that is one object, and so needs a key. */
export function admittedS3Object(
  url: string,
  policy: S3InputPolicy | undefined,
  location: ErrorLocation = {},
): S3Address {
  const address = admittedS3Address(url, policy, location);
  if (address.key !== '' && !address.key.endsWith('/')) return address;
  throw new AppError('S3_ADDRESS_INVALID', { problem: 'it names a folder, and this input takes a file' }, location);
}

/** The address as people write it. */
export function s3UrlOf({ bucket, key }: S3Address): string {
  return `s3://${bucket}/${key}`;
}

/** Segments of dots are refused: whatever stands before the server may resolve them, and lead to another bucket. */
function problemOf(bucket: string, key: string): string | null {
  if (!isBucketName(bucket)) return 'it names no bucket, as in s3://bucket/folder/video.mp4';
  if (key.includes('\0')) return 'its key holds a NUL';
  if (Buffer.byteLength(key) > LONGEST_KEY_BYTES) return `its key is longer than ${LONGEST_KEY_BYTES} bytes`;
  if (key.split('/').some((segment) => segment === '.' || segment === '..')) {
    return 'its key has a segment "." or "..". Write the key without it';
  }
  return null;
}
