import type { StoredObject } from './byte-source.ts';
import type { CopyRun } from './copy-runs.ts';

/** Takes bytes at positions: all that executing a plan asks of where it writes. */
export interface ByteWriter {
  /**
   * Tells, before the first write, which ranges of the output will be unchanged ranges of a stored object, so that a
   * writer to the same store can have them copied there. All bytes are written nevertheless; it leaves out what is copied.
   */
  copyFrom?(object: StoredObject, runs: readonly CopyRun[], signal: AbortSignal): Promise<void>;
  /**
   * Returns when the bytes have been handed over; the caller may reuse the buffer then. May be called side by side for
   * ranges that do not overlap.
   */
  write(bytes: Uint8Array, position: number, signal: AbortSignal): Promise<void>;
}

/**
 * An output being staged: bytes are written at positions, in any order, and nothing is seen at the destination
 * before `commit`.
 *
 * Obligations of every implementation (test/bytes/byte-sink-contract.ts runs them):
 * - `seal` ends writing, and makes durable all bytes that can be before the output appears; after it, `stagedPath` (where
 *   there is one) can be read back;
 * - `commit` makes the output appear whole at its destination, durably, or throws and leaves nothing;
 * - `discard` removes what was staged; it may be called at any time, again, and after a failed commit.
 */
export interface ByteSink extends ByteWriter {
  /** What the result calls `output_path`: an absolute path or `s3://bucket/key`. */
  readonly destination: string;
  /** The staged file on this host, where there is one. */
  readonly stagedPath?: string;
  /** Whether sealing and committing wait for this host's disk alone; what is written can then be read back at once. */
  readonly isOnDisk?: boolean;
  seal(signal: AbortSignal): Promise<void>;
  commit(signal: AbortSignal): Promise<void>;
  discard(): Promise<void>;
}
