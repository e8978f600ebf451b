import { catalogue, type DetailsOf, type Reason } from './catalogue.ts';
import type { ApiErrorCode, CatalogueEntry, DependencyKind, ErrorClass } from './entry.ts';

/** The location of a fault in a request or job; the fields become `error.details` of the error body. */
export interface ErrorLocation {
  /** A path into the request body, such as `params.assertions[0].label`. */
  readonly field?: string;
  /** Zero-based index into the request's `inputs`. */
  readonly inputIndex?: number;
  /** All of them, where several inputs are at fault. */
  readonly inputIndexes?: readonly number[];
}

/** The most problems of one request that are collected. */
export const MAX_PROBLEMS = 20;

/** An error that crossed a process boundary, as plain data. */
export interface AppErrorData {
  readonly reason: Reason;
  readonly details: object;
  readonly location: ErrorLocation;
}

/**
 * An operational error: something outside the code was wrong, and the catalogue says what, where and what to do.
 * Bugs are not AppErrors; they are assertions and end as `INTERNAL_ERROR`.
 */
export class AppError<R extends Reason = Reason> extends Error {
  override readonly name = 'AppError';
  readonly reason: R;
  readonly details: DetailsOf<R>;
  readonly location: ErrorLocation;
  /** Further problems of the same request. */
  readonly others: readonly AppError[];

  constructor(
    reason: R,
    details: DetailsOf<R>,
    options: { cause?: unknown; others?: readonly AppError[] } & ErrorLocation = {},
  ) {
    const { cause, others = [], ...location } = options;
    const { message } = catalogue[reason] as unknown as CatalogueEntry<object>;
    super(message(details as object), cause === undefined ? undefined : { cause });
    this.reason = reason;
    this.details = details;
    this.location = location;
    this.others = others;
  }

  /** The code of the error table that a caller sees. */
  get code(): ApiErrorCode {
    return catalogue[this.reason].code;
  }

  get class(): ErrorClass {
    return catalogue[this.reason].class;
  }

  /** True where whoever runs the service has to do something. */
  get isOperational(): boolean {
    return this.class === 'outage' || this.class === 'service';
  }

  /** The kinds of dependencies that may be the cause. */
  get dependencies(): readonly DependencyKind[] {
    return catalogue[this.reason].dependencies;
  }

  /** True where trying the same again later may help. */
  get isTransient(): boolean {
    return this.class === 'retry' || this.class === 'outage';
  }

  /** The message that a caller may read. */
  get callerMessage(): string {
    return catalogue[this.reason].callersSee ?? this.message;
  }

  /** True where the message and details are for the log only. */
  get isConfidential(): boolean {
    return catalogue[this.reason].callersSee !== undefined;
  }

  /** Throws the first of several problems, which has the others; does nothing where there is none. */
  static throwFirst([first, ...others]: readonly AppError[]): void {
    if (first !== undefined) throw new AppError(first.reason, first.details, { ...first.location, others });
  }

  /** Returns the error as data that survives a process boundary; `AppError.fromData` is the way back. */
  toData(): AppErrorData {
    return { reason: this.reason, details: this.details as object, location: this.location };
  }

  static fromData({ reason, details, location }: AppErrorData): AppError {
    return new AppError(reason, details as never, location);
  }
}

/** Resolves with null where a promise is rejected with an `AppError` that is expected: by default, with any. */
export async function unlessRefused<Result>(
  reading: Promise<Result>,
  isExpected: (error: AppError) => boolean = () => true,
): Promise<Result | null> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof AppError && isExpected(error)) return null;
    throw error;
  }
}
