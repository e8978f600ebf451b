import type { JobReport, RunReport } from '#telemetry/run-report.ts';

export const JOB_ID = '0197f3a2-5d5c-7c3e-9b1a-2f64d1c0a7e5';

/** An input that took 40 ms. */
export function runReport(differences: Partial<RunReport> = {}): RunReport {
  return {
    jobId: JOB_ID,
    inputIndex: 0,
    attempt: 1,
    operation: 'c2pa-video',
    end: 'succeeded',
    startedAtMs: 1_700_000_000_000,
    endedAtMs: 1_700_000_000_040,
    phases: { resolved: 5, copied: 25, signed: 26 },
    bytesDone: 1000,
    calls: {},
    traceParent: null,
    ...differences,
  };
}

export function jobReport(differences: Partial<JobReport> = {}): JobReport {
  return {
    jobId: JOB_ID,
    operation: 'c2pa-video',
    caller: null,
    status: 'succeeded',
    inputs: 1,
    queuedAtMs: 1_700_000_000_000,
    finishedAtMs: 1_700_000_000_050,
    traceParent: null,
    ...differences,
  };
}
