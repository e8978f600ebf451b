import type { ByteSource } from './byte-source.ts';

/** A file of a folder input, before it is opened. */
export interface FolderFile {
  /** Relative to the folder, segments separated by `/`, never absolute and never with `.` or `..` segments. */
  readonly path: string;
  readonly sizeBytes: number;
  /** Whether it is a link to another file of the folder. */
  readonly isLink?: boolean;
}

/**
 * An input folder as a list of files that can be opened one by one: a local folder, an HTTP directory, an S3 prefix.
 *
 * Obligations of every implementation:
 * - the list is complete, holds regular files only, names each path once, and is bounded in files, bytes and depth;
 * - `open` takes any listed path, any number of times, also side by side; the caller closes what it opened.
 */
export interface SourceFolder {
  /** The name shown to people and used for the output folder: one safe path segment. */
  readonly name: string;
  readonly files: readonly FolderFile[];
  /** The address that the folder's files have in the outside world, ending in `/`, where it came from one. */
  readonly baseUrl?: string;
  open(path: string, signal: AbortSignal): Promise<ByteSource>;
  /** Releases what the folder holds beyond the opened files. Safe to call again. */
  close(): Promise<void>;
}

/** A folder that cannot be listed: `files` is empty, and what is in it is known by references to it alone. */
export interface UnlistedFolder extends SourceFolder {
  readonly baseUrl: string;
  /** Takes a file that something refers to, which can be opened from then on. Throws where it is not to be in a folder. */
  note(path: string, url: URL): void;
}
