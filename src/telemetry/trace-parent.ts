/** Where a span belongs: its trace, the span above it, and whether the trace is recorded. */
export interface TraceParent {
  /** 32 lower-case hexadecimal digits, not all zero. */
  readonly traceId: string;
  /** 16 of them. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Versions after 00 may add fields at the end; version ff is forbidden (W3C Trace Context §3.2.2). */
const TRACE_PARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const SAMPLED_FLAG = 0x01;

/** Reads a `traceparent` header; null where there is none, or it is not one (§3.2.2). */
export function parseTraceParent(header: string | undefined): TraceParent | null {
  const [, version, traceId, spanId, flags, more] = TRACE_PARENT.exec(header ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return null;
  if (version === '00' && more !== undefined) return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & SAMPLED_FLAG) !== 0 };
}

export function formatTraceParent({ traceId, spanId, sampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`;
}
