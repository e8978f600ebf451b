import { basename } from 'node:path';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import { AppError } from '#errors/app-error.ts';
import { type S3Address, s3UrlOf } from '#s3/s3-address.ts';
import type { S3Deletion, S3Upload, S3Writer } from '#s3/s3-writer.ts';
import type { MaybeBegun, NotedUploads } from './upload-journal.ts';

/** Uploads that are ended at once. */
const ABORTS_AT_ONCE = 8;
/** Objects that are asked for their marks at once. */
const LOOKS_AT_ONCE = 16;

/** The server's clock and ours may differ by so much: the SDK corrects what is more. */
const CLOCK_DIFFERENCE_MS = 5 * 60_000;

/** From the note that an upload is about to be begun, all tries to begin it take at most so long. */
const LONGEST_BEGINNING_MS = 3 * 60_000;

/** Objects that were put are still ours if they are no younger than the last moment of the attempt, and so much. */
const PUT_CLOCK_DIFFERENCE_MS = 60_000;

/** An attempt that is over. */
export interface EndedAttempt {
  readonly noted: NotedUploads;
  /** What stands in the metadata of the objects that it put. */
  readonly mark: string;
  /** When it noted something last. */
  readonly endedAtMs: number;
}

/** What tells an attempt's objects from those of every other, even where they hold the same bytes. */
export function markOf({ jobId, inputIndex, attempt }: StagingKey): string {
  return `${jobId}-${inputIndex}-${attempt}`;
}

/** The mark of the attempt that left a note: the note's name starts with it, and ends in a hash of the destination. */
export function markOfNote(path: string): string {
  return basename(path).replace(/-[0-9a-f]{8}\.jsonl$/, '');
}

/**
 * Takes back what an attempt that is over noted: ends its uploads, and deletes the objects that it put where there were
 * none, as long as they are what it put. Returns the addresses.
 */
export async function settleUploads(writer: S3Writer, attempt: EndedAttempt): Promise<string[]> {
  const { noted } = attempt;
  const found = await Promise.all(noted.maybeBegun.map((begun) => uploadBegunAt(writer, begun)));
  const uploads = [...noted.uploads, ...found.filter((upload) => upload !== null)];
  await sideBySide(uploads, ABORTS_AT_ONCE, (upload) => unlessBucketIsGone(() => writer.abortUpload(upload)));
  const { folder } = noted;
  const puts = folder === null ? [] : ((await unlessBucketIsGone(() => ownPuts(writer, folder, attempt))) ?? []);
  if (folder !== null) await writer.deleteObjects(folder.bucket, puts);
  return [...uploads.map(s3UrlOf), ...puts.map(({ key }) => s3UrlOf({ bucket: folder?.bucket ?? '', key }))];
}

/**
 * An upload to the very key that was begun when ours was; null where there is none, or more than one, of which somebody
 * else's could be.
 */
async function uploadBegunAt(writer: S3Writer, { at, timeMs, others }: MaybeBegun): Promise<S3Upload | null> {
  const uploads = (await unlessBucketIsGone(() => writer.uploadsTo(at))) ?? [];
  const fitting = uploads.filter(({ uploadId, initiatedAt }) => {
    const afterMs = initiatedAt.getTime() - timeMs;
    return (
      !others.includes(uploadId) &&
      afterMs >= -CLOCK_DIFFERENCE_MS &&
      afterMs <= LONGEST_BEGINNING_MS + CLOCK_DIFFERENCE_MS
    );
  });
  const [only] = fitting;
  return only === undefined || fitting.length > 1 ? null : { ...at, uploadId: only.uploadId };
}

/**
 * The objects that are still the ones that the attempt put. Where nodes share the jobs, a later attempt may have
 * delivered the same bytes to the same place by now: of two such objects, the mark alone tells whose it is. Between the
 * look at the mark and the deletion are milliseconds, in which the ETag guards what has other bytes.
 */
async function ownPuts(
  writer: S3Writer,
  folder: S3Address,
  { noted: { puts, putsSinceMs }, mark, endedAtMs }: EndedAttempt,
): Promise<S3Deletion[]> {
  const found: S3Deletion[] = [];
  if (puts.size === 0) return found;
  for await (const { key, etag, modifiedAt } of writer.objectsUnder({ ...folder, key: `${folder.key}/` })) {
    const noted = puts.get(key);
    const isOfAttempt =
      modifiedAt.getTime() >= putsSinceMs - PUT_CLOCK_DIFFERENCE_MS &&
      modifiedAt.getTime() <= endedAtMs + PUT_CLOCK_DIFFERENCE_MS;
    if (noted !== undefined && isOfAttempt && (noted === null || noted === etag)) found.push({ key, etag });
  }
  const marks = await sideBySide(found, LOOKS_AT_ONCE, ({ key }) => writer.markAt({ bucket: folder.bucket, key }));
  return found.filter((_object, index) => marks[index] === mark);
}

/** Nothing is left in a bucket that is no longer there. */
async function unlessBucketIsGone<T>(step: () => Promise<T>): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof AppError && error.reason === 'S3_BUCKET_MISSING') return undefined;
    throw error;
  }
}
