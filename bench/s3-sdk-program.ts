// Does what a program without this service would do: the AWS SDK alone. `node bench/s3-sdk-program.ts WORK ENDPOINT REGION BUCKET …`
// prints the milliseconds of its work; credentials come from the environment.
//   download KEY         one request, whose bytes are counted and thrown away
//   upload KEY BYTES     a multipart upload of random bytes, parts of 8 MiB, four at once
//   copy-parts FROM TO   UploadPartCopy of a whole object in parts of 64 MiB, four at once: the server's own work alone
//   copy FROM TO COUNT   every object below a prefix to another one, so many at once: a GET, then a PUT
import { randomFillSync } from 'node:crypto';
import { S3 } from '@aws-sdk/client-s3';

const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_ONCE = 4;
const COPIED_PART_BYTES = 64 * 1024 * 1024;

const [work = '', endpoint = '', region = '', Bucket = '', ...rest] = process.argv.slice(2);
const client = new S3({ endpoint, region, forcePathStyle: true });
const works: Readonly<Record<string, () => Promise<void>>> = {
  download: () => download(rest[0] ?? ''),
  upload: () => upload(rest[0] ?? '', Number(rest[1])),
  'copy-parts': () => copyParts(rest[0] ?? '', rest[1] ?? ''),
  copy: () => copy(rest[0] ?? '', rest[1] ?? '', Number(rest[2])),
};
await client.headBucket({ Bucket });
const startedAt = performance.now();
await works[work]?.();
console.log(performance.now() - startedAt);
client.destroy();

async function download(Key: string): Promise<void> {
  const { Body, ContentLength } = await client.getObject({ Bucket, Key });
  let bytes = 0;
  for await (const chunk of Body as AsyncIterable<Uint8Array>) bytes += chunk.length;
  if (bytes !== ContentLength) throw new Error(`${bytes} bytes came instead of ${ContentLength}`);
}

async function upload(Key: string, sizeBytes: number): Promise<void> {
  const part = randomFillSync(Buffer.alloc(PART_BYTES));
  await inParts(Key, sizeBytes, PART_BYTES, async (upload, start, end) => {
    const { ETag, ChecksumCRC32 } = await client.uploadPart({ ...upload, Body: part.subarray(0, end - start) });
    return { ETag, ...(ChecksumCRC32 !== undefined && { ChecksumCRC32 }) };
  });
}

async function copyParts(from: string, to: string): Promise<void> {
  const { ContentLength = 0 } = await client.headObject({ Bucket, Key: from });
  await inParts(to, ContentLength, COPIED_PART_BYTES, async (upload, start, end) => {
    const range = { CopySource: `${Bucket}/${from}`, CopySourceRange: `bytes=${start}-${end - 1}` };
    const { CopyPartResult } = await client.uploadPartCopy({ ...upload, ...range });
    return { ETag: CopyPartResult?.ETag };
  });
}

interface PartPlace {
  readonly Bucket: string;
  readonly Key: string;
  readonly UploadId: string | undefined;
  readonly PartNumber: number;
}

/** A multipart upload of which `put` puts each part, some at once. */
async function inParts(
  Key: string,
  sizeBytes: number,
  partBytes: number,
  put: (place: PartPlace, start: number, end: number) => Promise<{ ETag: string | undefined }>,
): Promise<void> {
  const { UploadId } = await client.createMultipartUpload({ Bucket, Key });
  const numbers = Array.from({ length: Math.ceil(sizeBytes / partBytes) }, (_, index) => index + 1);
  const Parts: { ETag: string | undefined; PartNumber: number }[] = [];
  await inTurns(numbers, PARTS_AT_ONCE, async (PartNumber) => {
    const start = (PartNumber - 1) * partBytes;
    const part = await put({ Bucket, Key, UploadId, PartNumber }, start, Math.min(start + partBytes, sizeBytes));
    Parts[PartNumber - 1] = { PartNumber, ...part };
  });
  await client.completeMultipartUpload({ Bucket, Key, UploadId, MultipartUpload: { Parts } });
}

async function copy(from: string, to: string, atOnce: number): Promise<void> {
  const keys: string[] = [];
  for (let ContinuationToken: string | undefined, more = true; more; ) {
    const page = await client.listObjectsV2({ Bucket, Prefix: from, ContinuationToken });
    for (const { Key } of page.Contents ?? []) if (Key !== undefined) keys.push(Key);
    ContinuationToken = page.NextContinuationToken;
    more = page.IsTruncated === true;
  }
  await inTurns(keys, atOnce, async (key) => {
    const { Body } = await client.getObject({ Bucket, Key: key });
    const bytes = (await Body?.transformToByteArray()) ?? new Uint8Array();
    await client.putObject({ Bucket, Key: to + key.slice(from.length), Body: bytes });
  });
}

async function inTurns<T>(items: readonly T[], atOnce: number, task: (item: T) => Promise<void>): Promise<void> {
  const turns = items.values();
  const takeTurns = async (): Promise<void> => {
    for (const item of turns) await task(item);
  };
  await Promise.all(Array.from({ length: atOnce }, takeTurns));
}
