import { basename } from 'node:path';
import type { StagingKey } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError } from '#errors/app-error.ts';
import { type S3Address, s3UrlOf } from '#s3/s3-address.ts';
import type { S3Deletion, S3Upload, S3Writer } from '#s3/s3-writer.ts';
import type { MaybeBegun, NotedUploads, UploadNote } from './upload-journal.ts';

/** Concurrent aborts of uploads. */
const MAX_CONCURRENT_ABORTS = 8;
/** Concurrent requests for the marks of objects. */
const MAX_CONCURRENT_HEADS = 16;

/** Largest difference between the server's clock and ours: the SDK corrects larger ones. */
const CLOCK_DIFFERENCE_MS = 5 * 60_000;

/** Longest time that all attempts to create an upload take. */
const MAX_CREATION_MS = 3 * 60_000;

/** A finished attempt. */
interface FinishedAttempt {
  readonly noted: NotedUploads;
  /** The mark in the metadata of the objects that it put. */
  readonly mark: string;
}

/** Returns the mark of an attempt's objects, which differs from that of every other attempt. */
export function markOf({ jobId, inputIndex, attempt }: StagingKey): string {
  return `${jobId}-${inputIndex}-${attempt}`;
}

/** Returns the mark of the attempt that left a note: the note's name without the hash of the destination. */
export function markOfNote(path: string): string {
  return basename(path).replace(/-[0-9a-f]{8}\.jsonl$/, '');
}

/**
 * Rolls back what a finished attempt recorded: aborts its uploads, and deletes the objects that it put where there were none,
 * as long as they are unchanged. Returns the addresses.
 */
export async function rollBackUploads(writer: S3Writer, attempt: FinishedAttempt): Promise<string[]> {
  const { noted } = attempt;
  const found = await Promise.all(noted.maybeBegun.map((begun) => uploadBegunAt(writer, begun)));
  const uploads = [...noted.uploads, ...found.filter((upload) => upload !== null)];
  await mapConcurrent(uploads, MAX_CONCURRENT_ABORTS, (upload) => unlessBucketIsGone(() => writer.abortUpload(upload)));
  const { folder } = noted;
  const puts = folder === null ? [] : ((await unlessBucketIsGone(() => ownPuts(writer, folder, attempt))) ?? []);
  if (folder !== null) await writer.deleteObjects(folder.bucket, puts);
  return [...uploads.map(s3UrlOf), ...puts.map(({ key }) => s3UrlOf({ bucket: folder?.bucket ?? '', key }))];
}

/** Rolls back what is noted, and erases the note. One that cannot be rolled back now is left to the next start. */
export async function rollBackNoted(writer: S3Writer, note: Pick<UploadNote, 'noted' | 'erase'>): Promise<void> {
  await rollBackUploads(writer, { noted: note.noted, mark: writer.mark ?? '' }).then(
    () => note.erase(),
    () => undefined,
  );
}

/**
 * Returns an upload to the very key that was begun when ours was; null where there is none, or more than one, of which
 * somebody else's could be.
 */
async function uploadBegunAt(writer: S3Writer, { at, timeMs, others }: MaybeBegun): Promise<S3Upload | null> {
  const uploads = (await unlessBucketIsGone(() => writer.uploadsTo(at))) ?? [];
  const fitting = uploads.filter(({ uploadId, initiatedAt }) => {
    const afterMs = initiatedAt.getTime() - timeMs;
    return (
      !others.includes(uploadId) && afterMs >= -CLOCK_DIFFERENCE_MS && afterMs <= MAX_CREATION_MS + CLOCK_DIFFERENCE_MS
    );
  });
  const [only] = fitting;
  return only === undefined || fitting.length > 1 ? null : { ...at, uploadId: only.uploadId };
}

/**
 * Returns the objects that are still the ones that the attempt put. If nodes share the jobs, a later attempt may
 * have committed the same bytes to the same key by now: the mark alone tells whose an object is. Times would not: the
 * clocks of this host and the server may differ. Between the look at the mark and the deletion are milliseconds, in which
 * the ETag guards what has other bytes.
 */
async function ownPuts(
  writer: S3Writer,
  folder: S3Address,
  { noted: { puts }, mark }: FinishedAttempt,
): Promise<S3Deletion[]> {
  const found: S3Deletion[] = [];
  if (puts.size === 0) return found;
  for await (const { key, etag } of writer.list({ ...folder, key: `${folder.key}/` })) {
    const noted = puts.get(key);
    if (noted === null || noted === etag) found.push({ key, etag });
  }
  const marks = await mapConcurrent(found, MAX_CONCURRENT_HEADS, ({ key }) =>
    writer.markAt({ bucket: folder.bucket, key }),
  );
  return found.filter((_object, index) => marks[index] === mark);
}

/** Runs a step; returns undefined when the bucket is gone, with everything in it. */
async function unlessBucketIsGone<T>(step: () => Promise<T>): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof AppError && error.reason === 'S3_BUCKET_MISSING') return undefined;
    throw error;
  }
}
