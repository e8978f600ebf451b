import type { ByteSource } from './byte-source.ts';

/** File of a folder input, before it is opened. */
export interface FolderFile {
  /** Relative to the folder, segments separated by `/`, never absolute and never with `.` or `..` segments. */
  readonly path: string;
  readonly sizeBytes: number;
  /** True for a link to another file of the folder. */
  readonly isLink?: boolean;
}

/**
 * Input folder as a list of files that can be opened one by one: a local folder, an HTTP directory, an S3 prefix.
 *
 * Obligations of every implementation:
 * - the list is complete, has regular files only, each path once, and is bounded in files, bytes and depth;
 * - `open` takes any listed path, any number of times, also concurrently; the caller closes the source.
 */
export interface SourceFolder {
  /** Name in messages and of the output folder: one safe path segment. */
  readonly name: string;
  readonly files: readonly FolderFile[];
  /** URL of the folder, ending in `/`, where it has one. */
  readonly baseUrl?: string;
  open(path: string, signal: AbortSignal): Promise<ByteSource>;
  /** Tells whether there is a file that `files` lacks. Absent where `files` is all that there is. */
  hides?(path: string, signal: AbortSignal): Promise<boolean>;
  /** Tells whether a file came from another folder than that of its address, unless all that were opened did. Absent where none can. */
  isElsewhere?(path: string): boolean;
}

/** Opens a file of a folder, and closes it when `use` settles. */
export async function withSource<Result>(
  folder: Pick<SourceFolder, 'open'>,
  { path }: Pick<FolderFile, 'path'>,
  signal: AbortSignal,
  use: (source: ByteSource) => Promise<Result>,
): Promise<Result> {
  const source = await folder.open(path, signal);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}

/** Returns the sizes of the files of a folder by their paths, in bytes. */
export function sizesIn({ files }: Pick<SourceFolder, 'files'>): Map<string, number> {
  return new Map(files.map(({ path, sizeBytes }) => [path, sizeBytes]));
}

/** Folder that cannot be listed: `files` is empty, and its files are known from references only. */
export interface UnlistedFolder extends SourceFolder {
  readonly baseUrl: string;
  /**
   * Adds a file that something refers to, so that it can be opened. One that may be missing is left out where the server refuses it,
   * too: some refuse what they do not have. Throws where its path is not allowed in a folder.
   */
  addFile(path: string, url: URL, mayBeMissing: boolean): void;
  /** Keeps the content of a file that was added: the server is not asked for it again. */
  keepFile(path: string, content: Buffer): void;
}
