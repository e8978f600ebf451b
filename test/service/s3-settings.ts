import type { TestS3 } from '../support/servers/open-test-s3.ts';

/** The configuration of a service that reads from a test server's buckets and writes to one of them. */
export function s3Settings({ place }: Pick<TestS3, 'place'>, bucket: string): Record<string, string> {
  const access = { ENDPOINT_URL: place.endpoint, REGION: place.region, FORCE_PATH_STYLE: 'true' };
  const keys = ['INPUT_RESOLVERS', 'OUTPUT_SINKS'].flatMap((section) =>
    Object.entries({ ...access, BUCKETS: bucket }).map(([key, value]) => [`SERVICE__${section}__S3__${key}`, value]),
  );
  return {
    ...Object.fromEntries(keys),
    AWS_ACCESS_KEY_ID: place.accessKeyId,
    AWS_SECRET_ACCESS_KEY: place.secretAccessKey,
  };
}
