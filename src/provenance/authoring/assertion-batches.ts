import type { CustomAssertion } from './manifest-author.ts';

/**
 * Assertions of one batch are tried in one manifest. What the SDK needs to read a manifest grows with the square of their
 * number (2,000 take seconds), so the cost of a request is kept linear: 100 take about 30 ms.
 */
const MAX_BATCH_ASSERTIONS = 100;
/** A batch holds no more data than this, in bytes of JSON, unless a single assertion does: 1 MiB takes about 0.15 s. */
const MAX_BATCH_BYTES = 1024 * 1024;
/** A request of one batch with at most this much data, in bytes of JSON, is small: it is checked within milliseconds. */
const MAX_SMALL_BYTES = 64 * 1024;

/** Some assertions of a request, beside each other. */
export interface AssertionBatch {
  /** The index of the first of them in the request. */
  readonly start: number;
  readonly assertions: readonly CustomAssertion[];
}

/** The batches of one request, at least one. */
export interface BatchedAssertions {
  readonly batches: readonly AssertionBatch[];
  /** Whether checking them takes milliseconds. */
  readonly isSmall: boolean;
}

/** Divides the assertions of a request into batches. `sizesBytes` are the sizes of their data as JSON. */
export function batchAssertions(
  assertions: readonly CustomAssertion[],
  sizesBytes: readonly number[],
): BatchedAssertions {
  const starts = [0];
  let batchBytes = 0;
  for (const [index, sizeBytes] of sizesBytes.entries()) {
    const start = starts.at(-1) ?? 0;
    if (index > start && (index - start === MAX_BATCH_ASSERTIONS || batchBytes + sizeBytes > MAX_BATCH_BYTES)) {
      starts.push(index);
      batchBytes = 0;
    }
    batchBytes += sizeBytes;
  }
  return {
    batches: starts.map((start, at) => ({ start, assertions: assertions.slice(start, starts[at + 1]) })),
    isSmall: starts.length === 1 && batchBytes <= MAX_SMALL_BYTES,
  };
}
