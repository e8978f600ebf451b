import type { z } from 'zod';
import type { ScratchSpace } from '#bytes/scratch-space.ts';
import type { Config } from '#config/config.ts';
import type { OperationName } from '#contract/job.ts';
import type { JobLabels } from '#contract/job-labels.ts';
import type { ApiInputRef, ApiOutputSpec } from '#contract/request.ts';
import type { Verification } from '#contract/verification.ts';
import type { Warning } from '#errors/warning.ts';
import type { InputSize } from '#inputs/input-opener.ts';
import type { InputResolver } from '#inputs/input-resolver.ts';
import type { OutputSink } from '#outputs/output-sink.ts';
import type { AssertionChecker } from '#provenance/assertion-checker.ts';
import type { ManifestAuthor } from '#provenance/manifest-author.ts';
import type { FragmentReader, OutputChecker } from '#provenance/official-reader.ts';
import type { TrustSource } from '#provenance/trust-lists.ts';

export type { OperationName } from '#contract/job.ts';
export type { InputSize } from '#inputs/input-opener.ts';

/**
 * Work on one input as plain data, which is sent to the worker process. `params` has been validated by the
 * operation's request schema.
 */
export interface InputWork {
  readonly jobId: string;
  readonly inputIndex: number;
  /** Number of starts of this input; writes and commits of an older attempt are refused. */
  readonly attempt: number;
  readonly operation: OperationName;
  /** The name of the identity that it signs with; null where it signs nothing. */
  readonly identity: string | null;
  readonly input: ApiInputRef;
  readonly output: ApiOutputSpec | null;
  readonly params: unknown;
}

/** Result of one input that became an output. */
export interface InputOutcome {
  readonly outputPath: string;
  /** The file with the manifest, where it is not in the output itself. */
  readonly sidecarPath?: string;
  readonly warnings: readonly Warning[];
  /** SHA-256 of the manifest in hexadecimal, which differs from that of every other attempt; null for an unsigned package. */
  readonly manifestDigest: string | null;
}

/** Result of one input that was verified. */
export interface VerificationOutcome {
  readonly verification: Verification;
  /** The report; absent where none was written. */
  readonly outputPath?: string;
  readonly warnings: readonly Warning[];
}

/** Result of one input of any operation. */
export type OperationOutcome = InputOutcome | VerificationOutcome;

/**
 * Names the phases of an input. On local disks `sealed` and `verified` come in either order; `packaged` comes from
 * packaging only. They are logged, and tests kill the process at each of them.
 */
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

/** The progress of an input in bytes; the total is known once it was opened. */
export interface ByteProgress {
  readonly bytesDone: number;
  readonly bytesTotal: number;
}

/** Services and callbacks of the job, for the operation that processes one of its inputs. */
export interface InputContext {
  /** Aborted at shutdown, past a limit, or when the parent process is lost. */
  readonly signal: AbortSignal;
  /** Folder of this attempt for temporary files on this host; removed when the input finishes. */
  readonly scratch: ScratchSpace;
  /** Reports the size of a file or folder that was opened for the input: its budgets depend on it. */
  opened(size: InputSize): void;
  progress(bytesDone: number, bytesTotal: number): void;
  reached(phase: InputPhase): void;
  /**
   * Reserves a destination for this input. Rejects with `OUTPUT_TAKEN` where another input of the job has it, and with
   * `OUTPUT_TOUCHES_SOURCE` where it overlaps one of the job's inputs.
   */
  reserveOutputPath(destination: string): Promise<void>;
  /**
   * Confirms the lease; to be called right before an output is committed. Rejects where this node has lost the lease on
   * the input, because another node may process it by now.
   */
  confirmLease(): Promise<void>;
  /** Waits for a signature: where the signer or a time-stamp authority takes long, another input runs meanwhile. */
  awaitSignature<T>(sign: () => Promise<T>): Promise<T>;
}

/** Services that operations use in a worker; its composition root chooses the implementations. */
export interface OperationServices {
  readonly inputs: InputResolver;
  readonly outputs: OutputSink;
  readonly author: ManifestAuthor;
  /** Values of manifests where the request has none of its own. */
  readonly manifestDefaults: Pick<Config['signing'], 'digital_source_type' | 'actions'>;
  /** Null where `signing.verify_outputs` is off. */
  readonly outputChecker: OutputChecker | null;
  /** Trust lists that inputs and ingredients are validated with. */
  readonly trust: TrustSource;
  /** The folder of rubrics (`trust.rubrics_dir`), where there is one. */
  readonly rubricsDir?: string;
  readonly fragments: FragmentReader;
  /** Fragments of a publication that the official reader checks; null where `signing.verify_outputs` is off. */
  readonly fragmentChecks: 'sample' | 'all' | null;
}

/** Request of any operation; `params` is the operation's own. */
export interface OperationRequest {
  readonly inputs: readonly ApiInputRef[];
  readonly output?: ApiOutputSpec | null | undefined;
  readonly params?: unknown;
  readonly client_reference?: string | null | undefined;
  readonly labels?: JobLabels | null | undefined;
  readonly callback_url?: string | null | undefined;
}

/** Settings and checks that a request is validated against, before there is a job. */
export interface RequestContext {
  readonly config: Config;
  readonly checkAssertions: AssertionChecker['checkAssertions'];
  readonly signal: AbortSignal;
}

/** One operation: its route, its request, the requests that it refuses, and the work that it does on each input. */
export interface Operation<Outcome extends OperationOutcome = OperationOutcome> {
  readonly name: OperationName;
  /** Follows `/v2` and `/v2/sync`. */
  readonly path: `/${string}`;
  readonly summary: string;
  readonly request: z.ZodType<OperationRequest>;
  /** True where its outputs carry a manifest. */
  readonly signs: boolean;
  /**
   * Rejects with an AppError for every fault that the request and the configuration show, before a job is made. Opens no
   * input: faults in an input's bytes are found when it is processed.
   */
  validateRequest(request: OperationRequest, context: RequestContext): Promise<void>;
  /** Processes one input of a validated request, in a worker. Rejects with an AppError where the input fails. */
  run(work: InputWork, context: InputContext, services: OperationServices): Promise<Outcome>;
}
