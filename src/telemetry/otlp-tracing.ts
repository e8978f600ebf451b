import {
  type Context,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  ParentBasedSampler,
  RandomIdGenerator,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { JobReport, RunReport } from './run-report.ts';
import type { IncomingRequest, RequestSpan, Tracing } from './telemetry.ts';

/** Spans that wait to be exported; what comes while it is full is not traced. */
const MAX_SPANS_WAITING = 8192;
const EXPORT_TIMEOUT_MS = 5_000;
const EXPORT_INTERVAL_MS = 2_000;

/** The path of traces under an endpoint (OTLP/HTTP, "Default endpoint URLs"). */
const TRACES_PATH = 'v1/traces';

interface OtlpOptions {
  /** The collector's base address, such as `http://127.0.0.1:4318`. */
  readonly endpoint: string;
  readonly service: { readonly name: string; readonly version: string };
  /** Called where spans cannot be exported. */
  readonly failed: (message: string) => void;
  /** Bound on one export, in milliseconds. */
  readonly exportTimeoutMs?: number;
}

/** Exports traces in OTLP over HTTP. This module loads OpenTelemetry: import it where traces are asked for. */
export function startOtlpTracing({
  endpoint,
  service,
  failed,
  exportTimeoutMs = EXPORT_TIMEOUT_MS,
}: OtlpOptions): Tracing {
  const tell = (message: string) => failed(withoutInternals(message));
  diag.setLogger(
    { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const url = new URL(TRACES_PATH, endpoint.endsWith('/') ? endpoint : `${endpoint}/`);
  const exporter = new OTLPTraceExporter({ url: url.href, timeoutMillis: exportTimeoutMs });
  const ids = new ChosenIds();
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service.name, 'service.version': service.version }),
    sampler: new ParentBasedSampler({ root: new AlwaysOnSampler() }),
    idGenerator: ids,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: MAX_SPANS_WAITING,
        scheduledDelayMillis: EXPORT_INTERVAL_MS,
        exportTimeoutMillis: exportTimeoutMs,
      }),
    ],
  });
  return new OtlpTracing(provider, ids, tell);
}

/**
 * Replaces an error that OpenTelemetry tells as JSON with its stack by its message, which an operator can
 * do something with.
 */
function withoutInternals(text: string): string {
  if (!text.startsWith('{')) return text;
  try {
    const { message } = JSON.parse(text) as { message?: unknown };
    return typeof message === 'string' ? message : text;
  } catch {
    return text;
  }
}

const ignore = (): void => undefined;

/** Random identifiers, apart from the next one where it was chosen. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator();
  #nextSpanId: string | null = null;

  /** Runs what starts one span, which gets this identifier. */
  withSpanId(spanId: string, start: () => Span): Span {
    this.#nextSpanId = spanId;
    try {
      return start();
    } finally {
      this.#nextSpanId = null;
    }
  }

  generateTraceId(): string {
    return this.#random.generateTraceId();
  }

  generateSpanId(): string {
    return this.#nextSpanId ?? this.#random.generateSpanId();
  }
}

class OtlpTracing implements Tracing {
  readonly #provider: TracerProvider;
  readonly #ids: ChosenIds;
  readonly #failed: OtlpOptions['failed'];

  constructor(provider: TracerProvider, ids: ChosenIds, failed: OtlpOptions['failed']) {
    this.#provider = provider;
    this.#ids = ids;
    this.#failed = failed;
  }

  startRequest({ method, route, traceParent }: IncomingRequest): RequestSpan {
    const attributes = { 'http.request.method': method, 'http.route': route };
    const context = contextOf(parseTraceParent(traceParent));
    const span = this.#tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER, attributes }, context);
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      traceParent: formatTraceParent({ traceId, spanId, sampled: (traceFlags & TraceFlags.SAMPLED) !== 0 }),
      end: (status) => {
        span.setAttribute('http.response.status_code', status);
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      },
    };
  }

  runEnded(report: RunReport): void {
    const request = parseTraceParent(report.traceParent ?? undefined);
    if (request === null) return;
    const context = contextOf({ ...request, spanId: jobSpanId(report.jobId) });
    const span = this.#tracer.startSpan(
      `input ${report.operation}`,
      { startTime: report.startedAtMs, attributes: inputAttributes(report) },
      context,
    );
    for (const [phase, sinceStartMs] of Object.entries(report.phases)) {
      span.addEvent(phase, undefined, report.startedAtMs + sinceStartMs);
    }
    if (report.end === 'failed') span.setStatus({ code: SpanStatusCode.ERROR, message: report.reason ?? 'failed' });
    span.end(report.endedAtMs);
  }

  jobFinished(report: JobReport): void {
    const request = parseTraceParent(report.traceParent ?? undefined);
    if (request === null) return;
    const options = {
      startTime: report.queuedAtMs,
      attributes: {
        'attestream.job_id': report.jobId,
        'attestream.operation': report.operation,
        'attestream.inputs': report.inputs,
      },
    };
    const span = this.#ids.withSpanId(jobSpanId(report.jobId), () =>
      this.#tracer.startSpan(`job ${report.operation}`, options, contextOf(request)),
    );
    if (report.status === 'failed') span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(report.finishedAtMs);
  }

  async close(): Promise<void> {
    await this.#provider
      .shutdown()
      .catch((error: unknown) => this.#failed(error instanceof Error ? error.message : String(error)));
  }

  get #tracer() {
    return this.#provider.getTracer('attestream');
  }
}

function inputAttributes({ jobId, inputIndex, attempt, operation, end, reason, bytesDone }: RunReport) {
  return {
    'attestream.job_id': jobId,
    'attestream.input_index': inputIndex,
    'attestream.attempt': attempt,
    'attestream.operation': operation,
    'attestream.end': end,
    'attestream.output_bytes': bytesDone,
    ...(reason !== undefined && { 'attestream.reason': reason }),
  };
}

/**
 * Returns the identifier of a job's span: the second half of the job's own, which is random. So inputs can name the
 * span of their job as the one above them before it exists.
 */
function jobSpanId(jobId: string): string {
  return jobId.replaceAll('-', '').slice(-16);
}

function contextOf(parent: TraceParent | null): Context {
  if (parent === null) return ROOT_CONTEXT;
  const { traceId, spanId, sampled } = parent;
  const traceFlags = sampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** The parent of a span: its trace, the span above it, and whether the trace is sampled. */
interface TraceParent {
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
