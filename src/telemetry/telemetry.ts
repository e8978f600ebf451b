import type { InputReport, JobReport } from './input-report.ts';
import { type CurrentState, Metrics } from './metrics.ts';

/** Metrics, and traces where a collector is configured. */
export class Telemetry {
  readonly metrics: Metrics;
  readonly tracing: Tracing | null;

  /** `callers` are the names of those who may use the service. */
  constructor(stateNow: () => Promise<CurrentState>, tracing: Tracing | null, callers: readonly string[] = []) {
    this.metrics = new Metrics(stateNow, callers);
    this.tracing = tracing;
  }

  inputEnded(report: InputReport): void {
    this.metrics.inputEnded(report);
    this.tracing?.inputEnded(report);
  }

  jobEnded(report: JobReport): void {
    this.metrics.jobEnded(report);
    this.tracing?.jobEnded(report);
  }
}

/**
 * Follows a request over its job to every run of its inputs. The spans of jobs and inputs are made when they end, by
 * whichever node ends them, from what the store keeps: so a trace survives restarts and moves between nodes.
 */
export interface Tracing {
  startRequest(request: IncomingRequest): RequestSpan;
  /** A report without a `traceParent` is of a job that is not traced. */
  inputEnded(report: InputReport): void;
  jobEnded(report: JobReport): void;
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
