import { Metrics, type MetricsSources } from './metrics.ts';
import type { JobReport, RunReport } from './run-report.ts';

/** Metrics, and traces where a collector is configured. */
export class Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing | null;

  constructor(sources: MetricsSources, tracing: Tracing | null) {
    this.metrics = new Metrics(sources);
    this.tracing = tracing;
  }

  runEnded(report: RunReport): void {
    this.metrics.runEnded(report);
    this.tracing?.runEnded(report);
  }

  jobFinished(report: JobReport): void {
    this.metrics.jobFinished(report);
    this.tracing?.jobFinished(report);
  }
}

/**
 * Follows a request over its job to every run of its inputs. The spans of jobs and inputs are made when they end, by
 * whichever node ends them, from what the store keeps: so a trace survives restarts and moves between nodes.
 */
export interface Tracing {
  startRequest(request: IncomingRequest): RequestSpan;
  /** Records the end of a run. A report without a `traceParent` is of a job that is not traced. */
  runEnded(report: RunReport): void;
  jobFinished(report: JobReport): void;
  /** Exports what is left, within a bound. Never rejects. */
  close(): Promise<void>;
}

export interface IncomingRequest {
  readonly method: string;
  /** The pattern of the path, such as `/v2/jobs/:id`. */
  readonly route: string;
  /** The `traceparent` header that the client sent. */
  readonly traceParent: string | undefined;
}

export interface RequestSpan {
  /** The W3C `traceparent` for what this request brings about. */
  readonly traceParent: string;
  end(status: number): void;
}
