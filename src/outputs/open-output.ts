import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { isSameOrInside } from '#bytes/path-overlap.ts';
import type { FolderFile } from '#bytes/source-folder.ts';
import { AppError } from '#errors/app-error.ts';
import { parseS3Url, type S3Object } from '#s3/s3-address.ts';
import { connectS3 } from '#s3/s3-connection.ts';
import { S3Reader } from '#s3/s3-reader.ts';
import { contentTypeOf } from './content-type.ts';
import { outputTypeOf } from './output-sink.ts';
import type { S3OutputSettings } from './s3-sink.ts';

/** A committed file, open for reading. */
export interface OpenedOutput {
  readonly sizeBytes: number;
  /** An entity tag (RFC 9110 §8.8.3), quotes included: other bytes have another one. */
  readonly etag: string;
  readonly mediaType: string;
  /** Streams `length` bytes from `offset`, once. The output is closed when the stream closes. */
  read(offset: number, length: number): Readable;
  /** Closes an output that is not read. */
  close(): Promise<void>;
}

/** The output of an input: a file, or a folder that `segments` name a file in. */
interface OutputFile {
  /** The absolute path or `s3://` URL that the result names. */
  readonly outputPath: string;
  /** Names below it, without `.`, `..` and separators; none for the output itself. */
  readonly segments: readonly string[];
}

/** The configured destinations of outputs. */
interface OutputSettings {
  readonly local: { readonly base_dir: string };
  readonly s3?: S3OutputSettings;
}

/**
 * Opens a committed file. Resolves with null when there is none under that name: it was removed, is a folder, or a link
 * leads to it or out of the folder of outputs. Throws `OUTPUT_STORE_UNKNOWN`, and the errors of S3 as they are.
 */
export async function openOutput(
  file: OutputFile,
  { local, s3 }: OutputSettings,
  signal: AbortSignal,
): Promise<OpenedOutput | null> {
  switch (outputTypeOf(file.outputPath)) {
    case 'local':
      return await openLocalOutput(file, local.base_dir);
    case 's3':
      return await openS3Output(file, required(s3, file.outputPath), signal);
  }
}

/** The first files of an output in the order of their paths, `MAX_LISTED_FILES` at most, and whether there are more. */
export interface OutputListing {
  /** By their paths below the output; for an output that is a file, its name. */
  readonly files: readonly FolderFile[];
  readonly more: boolean;
}

/** Bound on the files of a listing: its answer takes 2 MB then. */
export const MAX_LISTED_FILES = 20_000;

/** Lists the files of a committed output. Throws as `openOutput` does; files that were removed are not listed. */
export async function listOutput(
  outputPath: string,
  settings: OutputSettings,
  signal: AbortSignal,
): Promise<OutputListing> {
  const itself = await openOutput({ outputPath, segments: [] }, settings, signal);
  if (itself !== null) {
    await itself.close();
    return { files: [{ path: basename(outputPath), sizeBytes: itself.sizeBytes }], more: false };
  }
  const files: FolderFile[] = [];
  for await (const file of filesBelow(outputPath, settings, signal)) {
    signal.throwIfAborted();
    if (files.length === MAX_LISTED_FILES) return { files, more: true };
    files.push(file);
  }
  return { files, more: false };
}

function filesBelow(
  outputPath: string,
  { local, s3 }: OutputSettings,
  signal: AbortSignal,
): AsyncGenerator<FolderFile> {
  switch (outputTypeOf(outputPath)) {
    case 'local':
      return localFilesBelow(outputPath, local.base_dir);
    case 's3':
      return objectsBelow(outputPath, required(s3, outputPath), signal);
  }
}

async function* localFilesBelow(outputPath: string, baseDir: string): AsyncGenerator<FolderFile> {
  const folder = await resolvedPathOf(outputPath, baseDir).catch(absent);
  const stats = folder === null ? null : await lstat(folder).catch(absent);
  if (folder !== null && stats?.isDirectory()) yield* filesIn(folder);
}

/** Yields files in the order of their paths, as S3 does; files and folders that are removed meanwhile are left out. */
async function* filesIn(folder: string, path = ''): AsyncGenerator<FolderFile> {
  const entries = (await readdir(join(folder, path), { withFileTypes: true }).catch(absent)) ?? [];
  for (const entry of entries.sort(byPath)) {
    const entryPath = join(path, entry.name);
    if (entry.isDirectory()) yield* filesIn(folder, entryPath);
    const stats = entry.isFile() ? await lstat(join(folder, entryPath)).catch(absent) : null;
    if (stats?.isFile()) yield { path: entryPath, sizeBytes: stats.size };
  }
}

/** Sorts the entries of a folder so that the paths of all files below it are in order: those in `a` come after `a.mp4`. */
function byPath(one: Dirent, other: Dirent): number {
  const bytesOf = (entry: Dirent): Buffer => Buffer.from(entry.isDirectory() ? `${entry.name}/` : entry.name);
  return Buffer.compare(bytesOf(one), bytesOf(other));
}

async function* objectsBelow(folder: string, s3: S3OutputSettings, signal: AbortSignal): AsyncGenerator<FolderFile> {
  const { bucket, key } = parseS3Url(folder);
  const prefix = `${key}/`;
  for await (const object of new S3Reader(await connectS3(s3)).list({ bucket, key: prefix }, signal)) {
    yield { path: object.key.slice(prefix.length), sizeBytes: object.sizeBytes };
  }
}

/** Throws where this node has no settings of the store that an output lies in, as a node may that only takes jobs. */
function required(s3: S3OutputSettings | undefined, outputPath: string): S3OutputSettings {
  if (s3 === undefined) throw new AppError('OUTPUT_STORE_UNKNOWN', { path: outputPath, key: 'output_sinks.s3' });
  return s3;
}

/** Errors of the system that mean "no such file": nothing there, a file used as a folder, a link, a name too long. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG']);

/**
 * Returns where an output lies, with the links on the way to it resolved; null where they lead out of the folder of outputs.
 * An output from before that folder was configured has no links on its way.
 */
async function resolvedPathOf(outputPath: string, baseDir: string): Promise<string | null> {
  const folder = dirname(outputPath);
  const real = await realpath(folder);
  const isInside = isSameOrInside(folder, baseDir) ? isSameOrInside(real, await realpath(baseDir)) : real === folder;
  return isInside ? join(real, basename(outputPath)) : null;
}

async function openLocalOutput({ outputPath, segments }: OutputFile, baseDir: string): Promise<OpenedOutput | null> {
  try {
    const resolved = await resolvedPathOf(outputPath, baseDir);
    if (resolved === null) return null;
    const path = join(resolved, ...segments);
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    return await describeLocal(file, path);
  } catch (error) {
    return absent(error);
  }
}

/** Returns null for an error that means "no such file", and throws every other one. */
function absent(error: unknown): null {
  if (ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) return null;
  throw error;
}

/** Checks what was opened, and not its name: a folder on the way may be, or have become, a link. */
async function describeLocal(file: FileHandle, path: string): Promise<OpenedOutput | null> {
  const [stats, opened] = await Promise.all([file.stat({ bigint: true }), pathOf(file, path)]);
  if (!stats.isFile() || opened !== path) {
    await file.close();
    return null;
  }
  const sizeBytes = Number(stats.size);
  return {
    sizeBytes,
    etag: `"${[stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].map((part) => part.toString(36)).join('-')}"`,
    mediaType: contentTypeOf(path),
    read: (offset, length) => {
      const pieces = file.createReadStream({ start: offset, end: offset + length - 1 });
      const stream = Readable.from(complete(pieces, length), { objectMode: false });
      // A client may be gone before the first piece is asked for: then `complete` has not begun, and closes nothing.
      return stream.once('close', () => pieces.destroy());
    },
    close: () => file.close(),
  };
}

/**
 * Yields pieces of `length` bytes together. Throws where they end before, as those of a file that is cut short meanwhile: its
 * size was told already, and a client would take what is sent next for the rest of it.
 */
async function* complete(pieces: AsyncIterable<Uint8Array>, length: number): AsyncGenerator<Uint8Array> {
  let missing = length;
  for await (const piece of pieces) {
    missing -= piece.length;
    yield piece;
  }
  if (missing > 0) throw new Error(`the file ends ${missing} bytes before the end that was told`);
}

async function pathOf(file: FileHandle, path: string): Promise<string> {
  return process.platform === 'linux' ? await readlink(`/proc/self/fd/${file.fd}`) : await realpath(path);
}

async function openS3Output(
  { outputPath, segments }: OutputFile,
  settings: S3OutputSettings,
  signal: AbortSignal,
): Promise<OpenedOutput | null> {
  const { bucket, key } = parseS3Url(outputPath);
  const reader = new S3Reader(await connectS3(settings));
  const at = { bucket, key: [key, ...segments].join('/') };
  try {
    // One byte tells the size and the version.
    const { object } = await reader.open(at, 1, signal);
    return {
      sizeBytes: object.sizeBytes,
      etag: object.etag,
      mediaType: contentTypeOf(basename(at.key)),
      read: (offset, length) => streamOf(reader, object, offset, length, signal),
      close: async () => undefined,
    };
  } catch (error) {
    if (error instanceof AppError && error.reason === 'S3_OBJECT_MISSING') return null;
    throw error;
  }
}

function streamOf(reader: S3Reader, object: S3Object, offset: number, length: number, signal: AbortSignal): Readable {
  return Readable.from(copied(reader.range(object, offset, length, signal)), { objectMode: false });
}

/** Copies pieces, which are valid only until the next one is asked for, while a response may still hold them. */
async function* copied(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  for await (const piece of pieces) yield Buffer.from(piece);
}
