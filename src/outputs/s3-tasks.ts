import { extname } from 'node:path';
import type { StagingKey } from '#bytes/staged-name.ts';
import { mapConcurrent } from '#concurrency/map-concurrent.ts';
import { AppError, type AppErrorData } from '#errors/app-error.ts';
import { Child } from '#processes/child.ts';
import { Launcher } from '#processes/launcher.ts';
import { connectS3, type S3Settings } from '#s3/s3-connection.ts';
import { S3Reader } from '#s3/s3-reader.ts';
import { S3Writer } from '#s3/s3-writer.ts';
import { markOfNote, rollBackUploads } from './s3/roll-back-uploads.ts';
import { leftoverNotes } from './s3/upload-journal.ts';
import type { S3OutputSettings } from './s3-sink.ts';

/** In a build, every module is JavaScript. */
const PROCESS_URL = new URL(`./s3/s3-task-process${extname(import.meta.url)}`, import.meta.url);

/** Time of one task. Each request has bounds of its own; what may hang is a program that credentials come from. */
const TASK_TIMEOUT_MS = 15 * 60_000;

/** Buckets that are probed concurrently. */
const MAX_CONCURRENT_PROBES = 8;

type S3TaskSettings = S3Settings & Pick<S3OutputSettings, 'buckets' | 'base_prefix'>;

/** A background task of the service in S3. */
type S3Task =
  /** Writes to and deletes from every bucket of outputs. */
  | { readonly kind: 'probe' }
  /** Lists a bucket of inputs. */
  | { readonly kind: 'list'; readonly bucket: string }
  /** Rolls back what attempts of lost processes left in S3: those of one attempt, or all. */
  | { readonly kind: 'roll-back'; readonly dataDir: string; readonly key: StagingKey | undefined };

/** The result of a task: the addresses that were rolled back, or an error. */
export type S3TaskAnswer = { readonly addresses: readonly string[] } | { readonly error: AppErrorData };

/** Probes every bucket of outputs. Throws `S3_PROBE_FAILED` when an object cannot be put into one and deleted again. */
export async function probeBuckets(
  settings: S3OutputSettings,
  launcher = new Launcher(),
  timeoutMs = TASK_TIMEOUT_MS,
): Promise<void> {
  await inProcess({ settings, task: { kind: 'probe' } }, launcher, timeoutMs);
}

/** Reads the beginning of the list of a bucket of inputs. Throws an AppError that names it. */
export async function probeInputBucket(
  settings: S3Settings,
  bucket: string,
  launcher: Launcher,
  timeoutMs: number,
): Promise<void> {
  const request = { settings: { ...settings, buckets: [], base_prefix: '' }, task: { kind: 'list', bucket } } as const;
  await inProcess(request, launcher, timeoutMs);
}

/**
 * Ends uploads, and deletes objects of unfinished publications, that processes which are gone left in S3: what the
 * journal notes and nothing else. Returns the addresses. Rejects where S3 cannot be reached, or after all others where one
 * cannot be rolled back; its note stays.
 */
export async function recoverUploads(
  settings: S3OutputSettings,
  dataDir: string,
  key?: StagingKey,
  launcher = new Launcher(),
): Promise<readonly string[]> {
  const notes = await leftoverNotes(dataDir, key);
  return notes.length === 0 ? [] : await inProcess({ settings, task: { kind: 'roll-back', dataDir, key } }, launcher);
}

/** The message that starts a task in its process. */
export interface S3TaskRequest {
  readonly settings: S3TaskSettings;
  readonly task: S3Task;
}

/** Runs a task in a process of its own: the SDK would otherwise keep its memory in the service. */
async function inProcess(
  request: S3TaskRequest,
  launcher: Launcher,
  boundMs = TASK_TIMEOUT_MS,
): Promise<readonly string[]> {
  const writable = request.task.kind === 'roll-back' ? [request.task.dataDir] : [];
  const child = new Child<S3TaskRequest, S3TaskAnswer>(launcher, PROCESS_URL, { execArgv: [], aws: true, writable });
  const because = `because S3 did not answer within ${boundMs / 1000} s`;
  const answer = await child.askOnce('the request to S3', request, { boundMs, because });
  if ('error' in answer) throw AppError.fromData(answer.error);
  return answer.addresses;
}

/** Runs a task in this process. */
export async function runS3Task(settings: S3TaskSettings, task: S3Task): Promise<readonly string[]> {
  const connection = await connectS3(settings);
  if (task.kind === 'list') return await listOne(new S3Reader(connection), task.bucket);
  const writer = new S3Writer(connection);
  if (task.kind === 'roll-back') return await rollBackLeftovers(writer, task);
  await mapConcurrent(settings.buckets, MAX_CONCURRENT_PROBES, (bucket) => probe(writer, bucket, settings.base_prefix));
  return [];
}

async function listOne(reader: S3Reader, bucket: string): Promise<string[]> {
  const { signal } = new AbortController();
  for await (const _ of reader.list({ bucket, key: '' }, signal)) break;
  return [];
}

/** One name for all probes: one that is killed before it deletes the object leaves it to the next. */
const PROBE_NAME = 'attestream-write-probe';

async function probe(writer: S3Writer, bucket: string, basePrefix: string): Promise<void> {
  const key = [...(basePrefix === '' ? [] : [basePrefix]), PROBE_NAME].join('/');
  try {
    await writer.put({ bucket, key }, new Uint8Array(), 'text/plain');
    await writer.deleteObjects(bucket, [{ key }]);
  } catch (cause) {
    if (!(cause instanceof AppError)) throw cause;
    throw new AppError('S3_PROBE_FAILED', { bucket, problem: cause.message }, { cause });
  }
}

async function rollBackLeftovers(
  writer: S3Writer,
  { dataDir, key }: Extract<S3Task, { kind: 'roll-back' }>,
): Promise<string[]> {
  const addresses: string[] = [];
  const failures: unknown[] = [];
  for (const { path, noted, erase } of await leftoverNotes(dataDir, key)) {
    try {
      addresses.push(...(await rollBackUploads(writer, { noted, mark: markOfNote(path) })));
      await erase();
    } catch (error) {
      // A server that cannot be reached would be waited for again with each note.
      if (error instanceof AppError && error.isTransient) throw error;
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
  return addresses;
}
