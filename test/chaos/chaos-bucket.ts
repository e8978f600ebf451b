import { parseS3Url } from '#s3/s3-address.ts';
import type { Files } from '../support/publications/signed-publication.ts';
import { openTestS3 } from '../support/servers/open-test-s3.ts';
import type { ChaosSource } from './chaos-sources.ts';

/** A bucket of a real S3 server, as a run needs it. */
export interface ChaosBucket {
  readonly name: string;
  /** Settings that the service is started with. */
  readonly settings: Readonly<Record<string, string>>;
  /** An output, as `check` wants it. */
  output(url: string, source: ChaosSource): Promise<Files>;
  /** Unfinished uploads, and objects that no result told of. */
  leftovers(delivered: ReadonlySet<string>): Promise<string[]>;
  close(): Promise<void>;
}

export async function openChaosBucket(): Promise<ChaosBucket> {
  const s3 = await openTestS3();
  const name = await s3.createBucket();
  const { endpoint, region } = s3.place;

  const keys = async (prefix: string): Promise<string[]> => {
    const found: string[] = [];
    for (let token: string | undefined; ; ) {
      const page = await s3.client.listObjectsV2({ Bucket: name, Prefix: prefix, ContinuationToken: token });
      found.push(...(page.Contents ?? []).map(({ Key = '' }) => Key));
      token = page.NextContinuationToken;
      if (token === undefined) return found;
    }
  };
  const bytesOf = async (key: string): Promise<Uint8Array> => {
    const { Body } = await s3.client.getObject({ Bucket: name, Key: key });
    return (await Body?.transformToByteArray()) ?? new Uint8Array();
  };

  return {
    name,
    settings: {
      SERVICE__OUTPUT_SINKS__S3__BUCKETS: name,
      SERVICE__OUTPUT_SINKS__S3__ENDPOINT_URL: endpoint,
      SERVICE__OUTPUT_SINKS__S3__REGION: region,
      SERVICE__OUTPUT_SINKS__S3__FORCE_PATH_STYLE: 'true',
    },
    async output(url, { isFolder, leaf }) {
      const { key } = parseS3Url(url);
      if (!isFolder) return { [leaf]: await bytesOf(key) };
      const files: Record<string, Uint8Array> = {};
      for (const path of await keys(`${key}/`)) files[path.slice(key.length + 1)] = await bytesOf(path);
      return files;
    },
    async leftovers(delivered) {
      const { Uploads = [] } = await s3.client.listMultipartUploads({ Bucket: name });
      const known = [...delivered].filter((url) => url.startsWith('s3://')).map((url) => parseS3Url(url).key);
      const unknown = (await keys('')).filter(
        (key) => !known.some((output) => key === output || key.startsWith(`${output}/`)),
      );
      return [...Uploads.map(({ Key }) => `upload of ${Key}`), ...unknown.map((key) => `object ${key}`)];
    },
    close: () => s3.close(),
  };
}
