import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { OperationName } from '#operations/operation.ts';
import type { RunningService } from '../../scripts/running-service.ts';
import type { ChaosOperation } from './chaos-sources.ts';
import type { KillMoment, KillPoint } from './kill-point.ts';

/** Does an input of every operation undisturbed, and returns the points that it came to, by what the log says. */
export async function learnKillPoints(
  service: RunningService,
  operations: readonly ChaosOperation[],
): Promise<Pick<KillPoint, 'operation' | 'moment'>[]> {
  const operationOf = new Map<string, OperationName>();
  for (const { name, route, params, sources } of operations) {
    const body = {
      inputs: [sources[0]?.input],
      output: { type: 'local', name: 'learning' },
      ...(params && { params }),
    };
    const job = await service.runSync(`/v2/sync/${route}`, body);
    assert.equal(job.status, 'succeeded', `${name}: ${JSON.stringify(job.results)}`);
    operationOf.set(job.job_id, name);
  }
  return endsOfInputs(service.logPath).flatMap(({ job_id: jobId, phases_ms: phases }) => {
    const operation = operationOf.get(jobId);
    const moments: KillMoment[] = ['started', ...(Object.keys(phases) as KillMoment[]), 'returned'];
    return operation === undefined ? [] : moments.map((moment) => ({ operation, moment }));
  });
}

interface InputEnd {
  readonly job_id: string;
  readonly phases_ms: Readonly<Record<string, number>>;
}

function endsOfInputs(logPath: string): InputEnd[] {
  return readFileSync(logPath, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"phases_ms":'))
    .map((line) => JSON.parse(line) as InputEnd);
}
