import type { ByteSource } from '#bytes/byte-source.ts';
import { PrefetchBudget, ReadAhead } from '#bytes/read-ahead.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import {
  admittedS3Address,
  admittedS3Object,
  decodedS3Address,
  type S3Address,
  type S3Object,
  s3UrlOf,
} from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { type OpenedS3Object, S3Reader } from '#s3/s3-reader.ts';
import { inputName, nameOfUrl } from '../input-name.ts';
import { type FileOpener, type FolderLimits, type FolderOpener, listedFolder } from '../input-opener.ts';

/** The keys of `input_resolvers.s3`. */
export type S3InputSettings = NonNullable<Config['input_resolvers']['s3']>;

/** The first bytes of an object come with the answer that says whether it is there: they tell the format. */
const HEAD_BYTES = 1024 * 1024;

/** Returns the opener of `remote_file_url` with the scheme `s3://`. */
export function s3FileOpener(settings: S3InputSettings): FileOpener<'remote_file_url'> {
  return ({ url, filename_hint: hint }, inputIndex, { signal }) =>
    openS3File(url, inputName([hint, nameOfUrl(url)], inputIndex), settings, signal);
}

/** Opens an object for random reads. `name` is what the source will be called. Throws `SOURCE_EMPTY` or `S3_…`. */
export async function openS3File(
  url: string,
  name: string,
  settings: S3InputSettings,
  signal: AbortSignal,
): Promise<ByteSource> {
  signal.throwIfAborted();
  const address = admittedS3Object(url, settings);
  const reader = new S3Reader(await connectS3(settings));
  const { object, ...known } = await openAsWritten(reader, address, signal);
  if (object.sizeBytes === 0) throw new AppError('SOURCE_EMPTY', { path: url });
  return sourceOf(reader, object, name, known);
}

/** Opens the object whose key is as written; where there is none, the one whose key is what that decodes to. */
async function openAsWritten(reader: S3Reader, address: S3Address, signal: AbortSignal): Promise<OpenedS3Object> {
  try {
    return await reader.open(address, HEAD_BYTES, signal);
  } catch (error) {
    const decoded = decodedS3Address(address);
    if (decoded === null || !mayBeMissing(error)) throw error;
    return await reader.open(decoded, HEAD_BYTES, signal).catch(() => {
      throw error;
    });
  }
}

/** Tells whether there is an object at an address, which the caller may read. Throws where the server does not say so. */
async function isThere(reader: S3Reader, address: S3Address, signal: AbortSignal): Promise<boolean> {
  try {
    await reader.open(address, 1, signal);
    return true;
  } catch (error) {
    if (mayBeMissing(error)) return false;
    throw error;
  }
}

/**
 * Returns true where the object may be missing: S3 does not tell that to callers without the right to list a bucket.
 */
function mayBeMissing(error: unknown): boolean {
  return error instanceof AppError && (error.reason === 'S3_OBJECT_MISSING' || error.reason === 'S3_ACCESS_DENIED');
}

/**
 * Returns an object as a source. Every read asks for the ETag that the object was found with, so that it is read as it was or not
 * at all, and there is nothing to be checked at the end.
 */
function sourceOf(
  reader: S3Reader,
  object: S3Object,
  name: string,
  { mediaType, ...known }: { readonly head?: Buffer; readonly mediaType?: string; readonly memory?: PrefetchBudget },
): ByteSource {
  const { bucket, key, etag, sizeBytes } = object;
  const fetch = (offset: number, length: number, signal: AbortSignal) => reader.range(object, offset, length, signal);
  const readAhead = new ReadAhead({ name, sizeBytes, fetch, ...known });
  return {
    name,
    sizeBytes,
    storedAt: { store: reader.store, bucket, key, etag },
    ...(mediaType !== undefined && { claimedMediaType: mediaType }),
    read: (target, offset, signal) => readAhead.read(target, offset, signal),
    close: async () => readAhead.close(),
  };
}

/** Returns the opener of `remote_folder_url` with the scheme `s3://`. */
export function s3FolderOpener(settings: S3InputSettings, limits: FolderLimits): FolderOpener<'remote_folder_url'> {
  return ({ url }, inputIndex, { signal }) =>
    openS3Folder(url, inputName([nameOfUrl(url)], inputIndex), settings, limits, signal);
}

/**
 * Lists every object whose key starts with the address's and a slash, or all of the bucket. Objects whose keys end in a slash, which
 * consoles put there to show an empty folder, are passed over; keys that no folder could hold are
 * refused. Opening a listed object asks for nothing, unless it is empty: its first read does. Throws `FOLDER_EMPTY`, `SOURCE_NOT_FOLDER`,
 * `FOLDER_ENTRY_REFUSED` or `S3_…`.
 */
export async function openS3Folder(
  url: string,
  name: string,
  settings: S3InputSettings,
  limits: FolderLimits,
  signal: AbortSignal,
): Promise<SourceFolder> {
  signal.throwIfAborted();
  const address = admittedS3Address(url, settings);
  const reader = new S3Reader(await connectS3(settings));
  const files = await listAsWritten(reader, address, limits, signal);
  if (files.length === 0) {
    const isObject = address.key !== '' && (await isThere(reader, address, signal));
    throw new AppError(isObject ? 'SOURCE_NOT_FOLDER' : 'FOLDER_EMPTY', { path: url });
  }
  // Files are read side by side, and some are large.
  const memory = new PrefetchBudget();
  return listedFolder(name, files, async ({ object }, sourceName) => {
    if (object.sizeBytes === 0) await reader.checkEmpty(object, signal);
    return sourceOf(reader, object, sourceName, { memory });
  });
}

/** Prefixes are taken as they are written; where nothing is, callers who encode them are understood too. */
async function listAsWritten(
  reader: S3Reader,
  address: S3Address,
  limits: FolderLimits,
  signal: AbortSignal,
): Promise<ListedObject[]> {
  const files = await listFiles(reader, address, limits, signal);
  const decoded = decodedS3Address(address);
  return files.length > 0 || decoded === null ? files : await listFiles(reader, decoded, limits, signal);
}

interface ListedObject extends FolderFile {
  readonly object: S3Object;
}

/** Returns all files. The limits hold while the listing goes on. */
async function listFiles(
  reader: S3Reader,
  { bucket, key }: S3Address,
  limits: FolderLimits,
  signal: AbortSignal,
): Promise<ListedObject[]> {
  const prefix = { bucket, key: key === '' || key.endsWith('/') ? key : `${key}/` };
  const files: ListedObject[] = [];
  let sizeBytes = 0;
  for await (const object of reader.list(prefix, signal)) {
    const path = object.key.slice(prefix.key.length);
    if (path === '' || path.endsWith('/')) continue;
    sizeBytes += object.sizeBytes;
    checkEntry(prefix, path, limits);
    if (files.length === limits.maxFiles) throw tooLarge(prefix, 'files', limits.maxFiles);
    if (sizeBytes > limits.maxBytes) throw tooLarge(prefix, 'bytes', limits.maxBytes);
    files.push({ path, sizeBytes: object.sizeBytes, object });
  }
  return files;
}

function checkEntry(prefix: S3Address, path: string, { maxDepth }: FolderLimits): void {
  const segments = path.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..' || segment.includes('\0'))) {
    const problem = 'has a key with an empty segment, "." or "..", which cannot be the path of a file';
    throw new AppError('FOLDER_ENTRY_REFUSED', { path: s3UrlOf(prefix), entry: path, problem });
  }
  if (segments.length - 1 > maxDepth) throw tooLarge(prefix, 'levels of folders', maxDepth);
}

function tooLarge(prefix: S3Address, what: 'files' | 'bytes' | 'levels of folders', limit: number): AppError {
  return new AppError('FOLDER_TOO_LARGE', { path: s3UrlOf(prefix), what, limit });
}
