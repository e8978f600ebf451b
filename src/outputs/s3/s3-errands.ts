import { randomUUID } from 'node:crypto';
import { extname } from 'node:path';
import { sideBySide } from '#bytes/side-by-side.ts';
import type { StagingKey } from '#bytes/staged-name.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { Launcher } from '#processes/launcher.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { S3Writer } from '#s3/s3-writer.ts';
import type { S3OutputSettings } from './s3-sink.ts';
import { markOfNote, settleUploads } from './settle-uploads.ts';
import { leftNotes } from './upload-journal.ts';

/** In a build, every module is JavaScript. */
const PROCESS_URL = new URL(`./s3-errand-process${extname(import.meta.url)}`, import.meta.url);

/** Buckets that are tried at once. */
const PROBES_AT_ONCE = 8;

/** Something that the service itself does in S3. */
export type S3Errand =
  /** Tries every bucket that outputs may go to. */
  | { readonly kind: 'probe' }
  /** Takes back what attempts left in S3 whose process is gone: one attempt's, or all. */
  | { readonly kind: 'settle'; readonly dataDir: string; readonly key: StagingKey | undefined };

/** What an errand led to: addresses of what was taken back. */
export type S3ErrandAnswer = { readonly addresses: readonly string[] } | { readonly error: AppErrorData };

/** Rejects where an object cannot be put into one of the buckets and deleted again. */
export async function probeBuckets(settings: S3OutputSettings, launcher = new Launcher()): Promise<void> {
  await inProcess({ settings, errand: { kind: 'probe' } }, launcher);
}

/**
 * Ends uploads, and deletes objects of unfinished publications, that processes which are gone left in S3: what the
 * journal notes and nothing else. Returns the addresses. Where S3 cannot be reached it rejects, and the notes stay.
 */
export async function recoverUploads(
  settings: S3OutputSettings,
  dataDir: string,
  key?: StagingKey,
  launcher = new Launcher(),
): Promise<readonly string[]> {
  const notes = await leftNotes(dataDir, key);
  return notes.length === 0 ? [] : await inProcess({ settings, errand: { kind: 'settle', dataDir, key } }, launcher);
}

/** What the process of an errand is told. */
export interface S3ErrandOrder {
  readonly settings: S3OutputSettings;
  readonly errand: S3Errand;
}

/** The SDK takes memory that the service needs at no other time: it is loaded in a process that ends with the errand. */
async function inProcess(order: S3ErrandOrder, launcher: Launcher): Promise<readonly string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<S3ErrandAnswer>();
  const writable = order.errand.kind === 'settle' ? [order.errand.dataDir] : [];
  const child = launcher.launch(PROCESS_URL, { execArgv: [], s3: true, writable });
  child.once('error', reject);
  child.once('message', (answer: S3ErrandAnswer) => resolve(answer));
  child.once('exit', (code, signal) => reject(new Error(`an errand in S3 ended early (${signal ?? code})`)));
  child.send(order);
  const answer = await promise;
  if ('error' in answer) throw AppError.fromData(answer.error);
  return answer.addresses;
}

/** Does an errand, in the process that it was given to. */
export async function doErrand(settings: S3OutputSettings, errand: S3Errand): Promise<readonly string[]> {
  const writer = new S3Writer(await connectS3(settings));
  if (errand.kind === 'settle') return await settleLeftUploads(writer, errand);
  await sideBySide(settings.buckets, PROBES_AT_ONCE, (bucket) => probe(writer, bucket, settings.base_prefix));
  return [];
}

async function probe(writer: S3Writer, bucket: string, basePrefix: string): Promise<void> {
  const key = [...(basePrefix === '' ? [] : [basePrefix]), `attestream-write-probe-${randomUUID()}`].join('/');
  try {
    await writer.put({ bucket, key }, new Uint8Array(), 'text/plain');
    await writer.deleteObjects(bucket, [{ key }]);
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    throw new AppError('S3_PROBE_FAILED', { bucket, problem: cause.message }, { cause });
  }
}

async function settleLeftUploads(
  writer: S3Writer,
  { dataDir, key }: Extract<S3Errand, { kind: 'settle' }>,
): Promise<string[]> {
  const addresses: string[] = [];
  for (const { path, noted, endedAtMs, erase } of await leftNotes(dataDir, key)) {
    addresses.push(...(await settleUploads(writer, { noted, mark: markOfNote(path), endedAtMs })));
    await erase();
  }
  return addresses;
}
