import { sql } from 'kysely';
import { isS3Url } from '#s3/s3-address.ts';
import type { Submission } from '../job.ts';
import { INPUT_LISTS } from '../retry-request.ts';
import { givenRows } from './dialect.ts';
import type { Database } from './tables.ts';

/** The part of a URL that may grant access: everything from its query or fragment on. */
const QUERY = /[?#].*$/s;

/** The same of an address in S3, in whose key "#" is a character like any other: `s3://bucket/Take #2.mp4`. */
const S3_QUERY = /\?.*$/s;

function withoutQuery(url: string): string {
  return url.replace(isS3Url(url) ? S3_QUERY : QUERY, '');
}

/** Returns true when a request contains URLs with a query, which may be presigned. */
export function hasUrlSecrets({ inputs, params }: Submission['request']): boolean {
  return hasQuery(inputs) || hasQuery(params);
}

/**
 * Erases the queries of all URLs from the record of a job, and marks the inputs that needed them. To be called when the
 * job is finished.
 */
export async function eraseUrlSecrets(db: Database, jobId: string): Promise<void> {
  const inputs = await db.selectFrom('inputs').select(['input_index', 'input']).where('job_id', '=', jobId).execute();
  const needsParams = await eraseFromParams(db, jobId);
  const rewritten = inputs.flatMap(({ input_index, input }) => {
    const parsed: unknown = JSON.parse(input);
    if (!hasQuery(parsed) && !needsParams(input_index)) return [];
    return [{ input_index, input: JSON.stringify(withoutQueries(parsed)) }];
  });
  await sql`update inputs set input = given.input, query_erased = 1
    from ${givenRows(db, { input_index: 'integer', input: 'text' }, rewritten)} as given
    where inputs.job_id = ${jobId} and inputs.input_index = given.input_index`.execute(db);
}

/** Erases the queries from `params`, and returns which inputs needed one, by their indexes. */
async function eraseFromParams(db: Database, jobId: string): Promise<(inputIndex: number) => boolean> {
  const request = await db.selectFrom('job_requests').select('params').where('job_id', '=', jobId).executeTakeFirst();
  const params: unknown = JSON.parse(request?.params ?? 'null');
  if (!hasQuery(params)) return () => false;
  await db
    .updateTable('job_requests')
    .set({ params: JSON.stringify(withoutQueries(params)) })
    .where('job_id', '=', jobId)
    .execute();
  return inputsWithQueryIn(params as JobParams);
}

/** The parts of `params` that name sources of inputs. */
type JobParams = { readonly parent?: unknown } & Readonly<
  Partial<Record<(typeof INPUT_LISTS)[number], readonly { readonly input_index: number }[]>>
>;

/** Returns which inputs have a source in `params` with a query. An override takes the place of the common parent. */
function inputsWithQueryIn(params: JobParams): (inputIndex: number) => boolean {
  const ofOne = INPUT_LISTS.flatMap((name) => params[name] ?? []).filter(hasQuery);
  const marked = new Set(ofOne.map((entry) => entry.input_index));
  const overridden = new Set(params.parent_overrides?.map((entry) => entry.input_index));
  const parentHasQuery = hasQuery(params.parent);
  return (inputIndex) => marked.has(inputIndex) || (parentHasQuery && !overridden.has(inputIndex));
}

/** Assertions are the caller's own data: the service fetches nothing that they name, so they contain no secret of it. */
const OPAQUE_FIELD = 'assertions';

/** Returns true when any field named `url` has a query. */
function hasQuery(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([key, part]) => {
    if (key === OPAQUE_FIELD) return false;
    return key === 'url' && typeof part === 'string' ? withoutQuery(part) !== part : hasQuery(part);
  });
}

/** Copies a value without the queries of its `url` fields. */
export function withoutQueries(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutQueries);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, part]) => {
      if (key === OPAQUE_FIELD) return [key, part];
      return [key, key === 'url' && typeof part === 'string' ? withoutQuery(part) : withoutQueries(part)];
    }),
  );
}
