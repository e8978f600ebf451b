/** What S3 and those that speak as it does call a bucket; older ones have capitals and underscores. */
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$/;

export function isBucketName(text: string): boolean {
  return BUCKET.test(text);
}
