import type { StoredObject } from './byte-source.ts';
import type { CopyRun } from './splice-plan.ts';

/** Destination of bytes at positions: all that `executePlan` needs. */
export interface ByteWriter {
  /**
   * Announces, before the first write, the ranges of the output that are unchanged ranges of a stored object, so that a
   * writer to the same store can have them copied there. All bytes are written nevertheless; the writer ignores those
   * it has copied.
   */
  copyFrom?(object: StoredObject, runs: readonly CopyRun[], signal: AbortSignal): Promise<void>;
  /**
   * Writes bytes. Resolves when the caller may reuse the buffer. May be called concurrently for ranges that
   * do not overlap.
   */
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
}

/**
 * Staged output: bytes are written at positions, in any order, and nothing is visible at the
 * destination before `commit`.
 *
 * Obligations of every implementation, which `test/bytes/byte-sink-contract.ts` checks:
 * - `seal` ends writing, and makes the bytes durable as far as possible before the output appears;
 *   after it, `stagedPath` (where there is one) can be read back;
 * - `commit` makes the output appear whole at its destination, durably, or throws and leaves nothing.
 *   Only a store that takes it and then cannot be reached may keep it, whole;
 * - `discard` removes what was staged; it may be called at any time, again, and after a failed commit.
 */
export interface ByteSink extends ByteWriter {
  /** The result's `output_path`: an absolute path or `s3://bucket/key`. */
  readonly destination: string;
  /** The staged file on this host, where there is one. */
  readonly stagedPath?: string;
  /** True where sealing and committing wait for this host's disk only; written bytes can then be read back at once. */
  readonly isOnDisk?: boolean;
  seal(signal: AbortSignal): Promise<void>;
  commit(signal: AbortSignal): Promise<void>;
  /**
   * Commits an output of the same sink and folder, and then this one, so that a process that dies in between leaves either
   * both or what was there before, once the next attempt or the next start has recovered it. Absent where the store offers
   * nothing for it: then one is committed after the other.
   */
  commitAfter?(first: ByteSink, signal: AbortSignal): Promise<void>;
  discard(): Promise<void>;
}
