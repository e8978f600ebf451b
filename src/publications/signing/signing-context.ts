import type { ByteSource } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { MediaPart } from '../publication.ts';
import type { OutputPaths } from './output-paths.ts';

/** Where the files of a signed publication go. */
export interface PublicationWriter {
  create(path: string, signal: AbortSignal): Promise<PartWriter>;
}

/** One file of the output; `close` hands it over. */
export interface PartWriter {
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** What the parts of a publication are signed with and from. */
export interface SigningContext {
  readonly folder: SourceFolder;
  readonly writer: PublicationWriter;
  readonly paths: OutputPaths;
  /** Room for the manifest in every init segment, in bytes. */
  readonly manifestSizeBytes: number;
  readonly signal: AbortSignal;
  /** Called with output bytes as they are written. */
  readonly wrote: (bytes: number) => void;
}

/** Opens the file that a part lies in for as long as it is used. */
export async function withSource<T>(
  folder: SourceFolder,
  { path }: MediaPart,
  signal: AbortSignal,
  use: (source: ByteSource) => Promise<T>,
): Promise<T> {
  const source = await folder.open(path, signal);
  try {
    return await use(source);
  } finally {
    await source.close();
  }
}
