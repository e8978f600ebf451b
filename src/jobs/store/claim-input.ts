import type { OperationName } from '#operations/operation.ts';
import type { Claim } from '../job.ts';
import type { Database } from './tables.ts';

/** An input that was started, with all that is needed to do it. The JSON is parsed where the work is done. */
export interface ClaimedInput extends Claim {
  readonly operation: OperationName;
  readonly inputJson: string;
  readonly outputJson: string;
  readonly paramsJson: string;
}

/** Starts the first queued input of a job; null where none is queued. */
export async function claimNextInput(db: Database, jobId: string, now: Date): Promise<ClaimedInput | null> {
  const started = await db
    .updateTable('inputs')
    .set(({ eb }) => ({ status: 'running', attempt: eb('attempt', '+', 1) }))
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .where('input_index', '=', ({ selectFrom }) =>
      selectFrom('inputs')
        .select(({ fn }) => fn.min('input_index').as('first'))
        .where('job_id', '=', jobId)
        .where('status', '=', 'queued'),
    )
    .returning(['input_index', 'attempt', 'input'])
    .executeTakeFirst();
  if (started === undefined) return null;

  await db
    .updateTable('jobs')
    .set({ status: 'running', started_at: now.toISOString() })
    .where('job_id', '=', jobId)
    .where('status', '=', 'queued')
    .execute();
  const request = await db
    .selectFrom('job_requests')
    .select(['operation', 'output', 'params'])
    .where('job_id', '=', jobId)
    .executeTakeFirstOrThrow();
  return {
    jobId,
    inputIndex: started.input_index,
    attempt: started.attempt,
    operation: request.operation,
    inputJson: started.input,
    outputJson: request.output,
    paramsJson: request.params,
  };
}
