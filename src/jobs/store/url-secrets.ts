import type { Submission } from '../job.ts';
import type { Database } from './tables.ts';

/** At most so many inputs are rewritten by one statement; engines bound the values of a statement. */
const INPUTS_AT_ONCE = 500;

/** What of a URL may be a grant: everything from its query or fragment on. */
const QUERY = /[?#].*$/s;

/** Whether a request holds URLs with a query, which may be presigned. */
export function holdsUrlSecrets({ inputs, params }: Submission['request']): boolean {
  return hasQuery(inputs) || hasQuery(params);
}

/** Erases the queries of all URLs from the record of a job. To be called when nothing is fetched for it any more. */
export async function eraseUrlSecrets(db: Database, jobId: string): Promise<void> {
  const inputs = await db.selectFrom('inputs').select(['input_index', 'input']).where('job_id', '=', jobId).execute();
  const rewritten = inputs.flatMap(({ input_index, input }) => {
    const parsed: unknown = JSON.parse(input);
    if (!hasQuery(parsed)) return [];
    // Only what the table insists on; the row is there, and keeps what it has.
    return [{ job_id: jobId, input_index, status: 'queued' as const, input: JSON.stringify(withoutQueries(parsed)) }];
  });
  for (let start = 0; start < rewritten.length; start += INPUTS_AT_ONCE) {
    await db
      .insertInto('inputs')
      .values(rewritten.slice(start, start + INPUTS_AT_ONCE))
      .onConflict((row) =>
        row.columns(['job_id', 'input_index']).doUpdateSet(({ ref }) => ({ input: ref('excluded.input') })),
      )
      .execute();
  }
  await eraseFromParams(db, jobId);
}

async function eraseFromParams(db: Database, jobId: string): Promise<void> {
  const request = await db.selectFrom('job_requests').select('params').where('job_id', '=', jobId).executeTakeFirst();
  const params: unknown = JSON.parse(request?.params ?? 'null');
  if (!hasQuery(params)) return;
  await db
    .updateTable('job_requests')
    .set({ params: JSON.stringify(withoutQueries(params)) })
    .where('job_id', '=', jobId)
    .execute();
}

/** Assertions are the caller's own data: nothing is fetched by what stands in them, and they are no secret. */
const OPAQUE_FIELD = 'assertions';

/** Whether any field named `url` has a query. */
function hasQuery(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, part]) => {
    if (key === OPAQUE_FIELD) return false;
    return key === 'url' && typeof part === 'string' ? QUERY.test(part) : hasQuery(part);
  });
}

/** A copy in which no field named `url` has a query. */
function withoutQueries(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutQueries);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => {
      if (key === OPAQUE_FIELD) return [key, part];
      return [key, key === 'url' && typeof part === 'string' ? part.replace(QUERY, '') : withoutQueries(part)];
    }),
  );
}
