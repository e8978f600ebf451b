import { isBucketName } from '#config/addresses.ts';
import { AppError, type ErrorLocation } from '#errors/app-error.ts';

/** An address in S3: an object by its key, or all objects whose keys start with it. */
export interface S3Address {
  readonly bucket: string;
  /** As S3 knows it, not encoded; empty for the whole bucket. */
  readonly key: string;
}

/** An object as it was when it was found: its ETag changes with its bytes. */
export interface S3Object extends S3Address {
  readonly sizeBytes: number;
  /** With the quotation marks that S3 puts around it. */
  readonly etag: string;
}

const SCHEME = /^s3:\/\//i;

/** The limit of S3 on keys, in bytes of UTF-8. */
export const MAX_KEY_BYTES = 1024;

/** Tells whether an address has the scheme `s3://`. */
export function isS3Url(url: string): boolean {
  return SCHEME.test(url);
}

/**
 * Reads `s3://bucket/key`. The key is taken as it is written, with spaces, "%", "?" and "#" in it: that is how
 * the AWS console and its command line write these addresses, which are no URLs in the sense of RFC 3986.
 * Throws `S3_ADDRESS_INVALID`.
 */
export function parseS3Url(url: string, location: ErrorLocation = {}): S3Address {
  const [bucket = '', ...rest] = url.replace(SCHEME, '').split('/');
  const key = rest.join('/');
  const problem = problemOf(bucket, key);
  if (problem !== null) throw new AppError('S3_ADDRESS_INVALID', { problem }, location);
  return { bucket, key };
}

/** Returns the address with its key decoded once, for callers who encode it; null when that changes nothing. */
export function decodedS3Address({ bucket, key }: S3Address): S3Address | null {
  try {
    const decoded = decodeURIComponent(key);
    return decoded === key || problemOf(bucket, decoded) !== null ? null : { bucket, key: decoded };
  } catch {
    // A percent sign that starts no escape: the key is meant as it is written.
    return null;
  }
}

/** The part of `input_resolvers.s3` that restricts where inputs are read from. */
interface S3InputPolicy {
  /** Absent: from every bucket that the service's credentials may read. */
  readonly buckets?: readonly string[];
}

/**
 * Parses the address of an input. Throws `S3_INPUTS_OFF` without a policy, and `S3_BUCKET_REFUSED` for a bucket that
 * the policy does not allow. `location` is the position of the address in a request.
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

/** Parses and checks the address of an input that is one object. Throws `S3_ADDRESS_INVALID` when it has no key. */
export function admittedS3Object(
  url: string,
  policy: S3InputPolicy | undefined,
  location: ErrorLocation = {},
): S3Address {
  const address = admittedS3Address(url, policy, location);
  if (address.key !== '' && !address.key.endsWith('/')) return address;
  throw new AppError('S3_ADDRESS_INVALID', { problem: 'it names a folder, and this input takes a file' }, location);
}

/** Formats an address as `s3://bucket/key`. */
export function s3UrlOf({ bucket, key }: S3Address): string {
  return `s3://${bucket}/${key}`;
}

/** Returns what is wrong with an address. Dot segments are refused: a proxy may resolve them, and reach another bucket. */
function problemOf(bucket: string, key: string): string | null {
  if (!isBucketName(bucket)) return 'it names no bucket, as in s3://bucket/folder/video.mp4';
  if (key.includes('\0')) return 'its key holds a NUL';
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) return `its key is longer than ${MAX_KEY_BYTES} bytes`;
  if (key.split('/').some((segment) => segment === '.' || segment === '..')) {
    return 'its key has a segment "." or "..". Write the key without it';
  }
  return null;
}

/**
 * Returns the normalised addresses that an input may be read from, for comparison with destinations: with the key as it is
 * written and decoded, without slashes at its end. Empty for an address that is not of S3.
 */
export function comparableS3Urls(url: string): string[] {
  if (!isS3Url(url)) return [];
  const address = parseS3Url(url);
  const decoded = decodedS3Address(address);
  return [address, ...(decoded === null ? [] : [decoded])].map(comparable);
}

function comparable({ bucket, key }: S3Address): string {
  return s3UrlOf({ bucket, key }).replace(/\/+$/, '');
}
