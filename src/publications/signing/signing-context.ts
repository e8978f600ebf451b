import type { ByteSource } from '#bytes/byte-source.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import type { PartContents } from '../checking/part-contents.ts';
import type { MediaPart } from '../publication.ts';
import type { GroupBench } from './group-bench.ts';
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

/** What the parts of a publication are signed from, and where they go. */
export interface SigningContext {
  readonly folder: SourceFolder;
  readonly writer: PublicationWriter;
  readonly paths: OutputPaths;
  readonly signal: AbortSignal;
  /** Called with output bytes as they are written. */
  readonly wrote: (bytes: number) => void;
  /** What the parts were when they were validated; absent where they carried no manifest. */
  readonly validated?: PartContents;
}

/** What the fragments of a rendition are signed with. */
export interface FragmentsContext extends SigningContext {
  /** Shared by the renditions that are signed side by side. */
  readonly bench: GroupBench;
  /** The size of a file of the folder, in bytes. */
  readonly sizeOf: (path: string) => number;
  /** Called with a fragment that was written and is not read any more. */
  readonly done?: (part: MediaPart) => Promise<void>;
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
