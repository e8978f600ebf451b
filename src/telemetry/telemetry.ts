import type { InputReport, JobReport } from './input-report.ts';
import { type CurrentState, Metrics } from './metrics.ts';
import type { Tracing } from './tracing.ts';

/** What the service tells of itself: the metrics always, traces where a collector is configured. */
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
