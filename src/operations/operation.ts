import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { Warning } from '#errors/warning.ts';
import type { InputResolver, InputSize } from '#inputs/input-resolver.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import type { ManifestAuthor, OutputReader } from '#provenance/authoring/manifest-author.ts';
import type { FragmentReader } from '#provenance/reading/fragment-reader.ts';

export type { InputSize } from '#inputs/input-resolver.ts';

/**
 * Everything an operation needs to do one input, as plain data: it crosses to the worker process.
 * `params` has been validated by the operation's request schema.
 */
export interface InputWork {
  readonly jobId: string;
  readonly inputIndex: number;
  /** Counts the starts of this input; writes and deliveries of an older attempt are refused. */
  readonly attempt: number;
  readonly operation: OperationName;
  readonly input: ApiInputRef;
  readonly output: ApiOutputSpec | null;
  readonly params: unknown;
}

export type OperationName = 'c2pa-video' | 'c2pa-audio' | 'c2pa-fragmented' | 'c2pa-package' | 'package';

/** What an input became. */
export interface InputOutcome {
  readonly outputPath: string;
  readonly warnings: readonly Warning[];
  /** What tells this output from those of other attempts: the SHA-256 of its manifest, in hexadecimal. */
  readonly digest?: string;
}

/** Named points on an input's way, in order. They are logged, and tests stop the process at each of them. */
export const INPUT_PHASES = [
  'resolved',
  'staged',
  'packaged',
  'copied',
  'signed',
  'sealed',
  'verified',
  'delivered',
] as const;
export type InputPhase = (typeof INPUT_PHASES)[number];

/** What the job behind an input gives to the operation that runs it. */
export interface InputContext {
  /** Aborted when the input is to stop: shutdown, a bound that was passed, a lost parent process. */
  readonly signal: AbortSignal;
  /** Where this attempt may put files on this host. What is in it is removed when the input ends. */
  readonly scratch: ScratchSpace;
  /** Told the size of every file and folder that is opened for the input: its budgets depend on it. */
  opened(size: InputSize): void;
  progress(bytesDone: number, bytesTotal: number): void;
  reached(phase: InputPhase): void;
  /**
   * Reserves a destination for this input. Rejects with an AppError where another input of the job has it, or where
   * it is, holds or lies inside one of the job's inputs.
   */
  claimDestination(destination: string): Promise<void>;
  /**
   * To be called right before an output appears at its destination. Rejects where the input is no longer this node's to
   * deliver: another one may have it by now.
   */
  mayDeliver(): Promise<void>;
  /**
   * To be called when what is left takes little memory and is mostly waiting: for the key, for a time-stamp, for this
   * host's disk. The next input is begun meanwhile.
   */
  settling(): void;
}

/** What operations stand on in a worker; its composition root names the implementations. */
export interface OperationRooms {
  readonly inputs: InputResolver;
  readonly outputs: OutputSink;
  readonly author: ManifestAuthor;
  /** Absent where `signing.verify_outputs` is off. */
  readonly reader: OutputReader | null;
  readonly fragments: FragmentReader;
  /** Which fragments of a publication the official reader checks; null where `signing.verify_outputs` is off. */
  readonly fragmentChecks: 'sample' | 'all' | null;
}
