import { basename } from 'node:path';
import type { ByteSource } from '#bytes/byte-source.ts';
import { PrefetchBudget } from '#bytes/read-ahead.ts';
import type { FolderFile, SourceFolder } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { admittedS3Address, decodedS3Address, type S3Address, type S3Object, s3UrlOf } from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { S3Reader } from '#s3/s3-reader.ts';
import { inputName, nameOfUrl, safeName } from '../input-name.ts';
import type { FolderLimits, FolderOpener } from '../input-resolver.ts';
import type { S3InputSettings } from './s3-file.ts';
import { S3Source } from './s3-file.ts';

/** The opener of `remote_folder_url` with the scheme `s3://`. */
export function s3FolderOpener(settings: S3InputSettings, limits: FolderLimits): FolderOpener<'remote_folder_url'> {
  return ({ url }, inputIndex, { signal }) =>
    openS3Folder(url, inputName([nameOfUrl(url)], inputIndex), settings, limits, signal);
}

/**
 * Lists every object whose key starts with the address's and a slash, or all of the bucket. What consoles put there to
 * show an empty folder, an object whose key ends in a slash, is passed over; keys that no folder could hold are refused.
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
  if (files.length === 0) throw new AppError('FOLDER_EMPTY', { path: url });
  return new S3Folder(reader, name, files);
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

/** All files in the order of their paths' code units. The limits hold while the listing goes on. */
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
  return files.sort((first, second) => (first.path < second.path ? -1 : 1));
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

/** The objects under a prefix as they were listed. Opening one asks for nothing: its first read does. */
class S3Folder implements SourceFolder {
  readonly name: string;
  readonly files: readonly FolderFile[];
  readonly #reader: S3Reader;
  readonly #objects: ReadonlyMap<string, S3Object>;
  /** Files are read side by side, and some are large. */
  readonly #memory = new PrefetchBudget();

  constructor(reader: S3Reader, name: string, files: readonly ListedObject[]) {
    this.name = name;
    this.files = files;
    this.#reader = reader;
    this.#objects = new Map(files.map(({ path, object }) => [path, object]));
  }

  async open(path: string, signal: AbortSignal): Promise<ByteSource> {
    signal.throwIfAborted();
    const object = this.#objects.get(path);
    if (object === undefined) throw new AppError('SOURCE_NOT_FOUND', { path });
    return new S3Source(this.#reader, object, safeName(basename(path)) || this.name, { memory: this.#memory });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
