import type { Jobs } from '#jobs/jobs.ts';
import { operations } from '#operations/registry.ts';
import type { NodeState } from '#telemetry/metrics.ts';
import { Telemetry, type Tracing } from '#telemetry/telemetry.ts';

/** A node on which nothing happens. */
export const IDLE_NODE: NodeState = {
  inputsRunning: 0,
  workerProcesses: 0,
  queueCapacity: 100,
  away: [],
  identities: [],
  otherNodes: [],
};

/** Telemetry of jobs, as the service has it; `jobsNow` returns null where they have no store. */
export function telemetryOf(jobsNow: () => Jobs | null, tracing: Tracing | null = null): Telemetry {
  return new Telemetry(
    {
      store: async () => {
        const jobs = jobsNow();
        if (jobs === null) throw new Error('these jobs have no store');
        return jobs.state();
      },
      node: () => jobsNow()?.nodeState() ?? IDLE_NODE,
      version: '0.0.0',
      operations: operations.map(({ name }) => name),
    },
    tracing,
  );
}
