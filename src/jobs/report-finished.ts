import type { Log } from '#telemetry/logger.ts';
import type { JobReport } from '#telemetry/run-report.ts';
import type { Telemetry } from '#telemetry/telemetry.ts';

/** Logs, measures and traces a finished job. */
export function reportFinished(
  report: JobReport,
  { log, telemetry }: { readonly log: Log; readonly telemetry: Telemetry | undefined },
): void {
  const { jobId, operation, caller, status, inputs, queuedAtMs, finishedAtMs } = report;
  const ids = { job_id: jobId, ...(caller !== null && { caller }) };
  log.info({ ...ids, operation, status, inputs, ms: finishedAtMs - queuedAtMs }, 'job ended');
  telemetry?.jobFinished(report);
}
