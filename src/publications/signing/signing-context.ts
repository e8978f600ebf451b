import { BufferArena } from '#bytes/buffers.ts';
import type { SourceFolder } from '#bytes/source-folder.ts';
import { Semaphore } from '#concurrency/semaphore.ts';
import type { FolderSink } from '#outputs/output-sink.ts';
import type { PartContents } from '../fragments/part-contents.ts';
import type { OutputPaths } from '../fragments/signed-part.ts';
import type { MediaPart } from '../media-part.ts';

/** Output folder of a signed publication. */
export type PublicationWriter = Pick<FolderSink, 'create'>;

/** Source and destination of the parts of a publication. */
export interface SigningContext {
  readonly folder: SourceFolder;
  readonly writer: PublicationWriter;
  readonly paths: OutputPaths;
  readonly signal: AbortSignal;
  /** Called with output bytes as they are written. */
  readonly wrote: (bytes: number) => void;
  /** Digests of the parts when they were validated; absent where they carried no manifest. */
  readonly validated?: PartContents;
}

/** Source, destination and shared resources of the fragments that are signed. */
export interface FragmentsContext extends SigningContext {
  /** Shared by renditions that are signed concurrently. */
  readonly mutex: FragmentGroupMutex;
  /** The size of a file of the folder, in bytes. */
  readonly sizeOf: (path: string) => number;
  /** Called with a fragment that was written and is not read any more. */
  readonly done?: (part: MediaPart) => Promise<void>;
}

/**
 * Lets one group of fragments be signed at a time, of whatever rendition: groups share memory, and the fragments of one
 * keep the machine busy.
 */
export class FragmentGroupMutex {
  readonly #arena = new BufferArena();
  readonly #mutex = new Semaphore(1);

  /** Runs a task when those before it have settled. The arena belongs to the task until it settles. */
  run<Result>(task: (arena: BufferArena) => Promise<Result>): Promise<Result> {
    return this.#mutex.run(async () => {
      const result = await task(this.#arena);
      // After a failure the buffers may still be written to: the arena is not reset, so that they are not used again.
      this.#arena.reset();
      return result;
    });
  }
}
