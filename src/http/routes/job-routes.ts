import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { jobRequestResponse, jobResultResponse } from '#contract/job.ts';
import { type JobListQuery, jobListQuery, jobListResponse } from '#contract/job-list.ts';
import { AppError } from '#errors/app-error.ts';
import { scopeOf } from '#jobs/caller.ts';
import { type JobSnapshot, jobJson } from '#jobs/job.ts';
import type { JobService } from '#jobs/jobs.ts';
import { operationNamed } from '#operations/registry.ts';
import { errorResponses, ok } from '../openapi/responses.ts';

/** Every identifier that this service gives out looks like this; anything else need not be looked up. */
const JOB_ID = /^[A-Za-z0-9_-]{1,64}$/;

export const jobParams = z.object({ id: z.string().describe('The job identifier.') });

/** A route about one job. */
export interface JobRoute {
  readonly Params: { readonly id: string };
}

/** Returns a job identifier that is worth looking up; throws JOB_UNKNOWN for one that is none of this service's. */
export function knownJobId(id: string): string {
  if (JOB_ID.test(id)) return id;
  throw new AppError('JOB_UNKNOWN', { jobId: id.slice(0, 64) });
}

/** Adds the look-up of a job and of its request, its cancelling, and the list of jobs. */
export function addJobRoutes(app: FastifyInstance, jobs: JobService): void {
  addLookUp(app, jobs);
  addRequestLookUp(app, jobs);
  addCancel(app, jobs);
  addList(app, jobs);
}

function addLookUp(app: FastifyInstance, jobs: JobService): void {
  app.route<JobRoute>({
    method: 'GET',
    url: '/v2/jobs/:id',
    schema: {
      operationId: 'get-job',
      summary: 'Look up a job',
      description: 'The job as it is now, whether it was submitted to an asynchronous or a synchronous route.',
      tags: ['Jobs'],
      params: jobParams,
      response: {
        200: ok(jobResultResponse, 'The job as it is now.'),
        ...errorResponses([400, 401, 403, 404, 405, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const id = knownJobId(request.params.id);
      const job = await jobs.find(id, scopeOf(request.caller));
      if (job === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
      return sendJob(reply, job);
    },
  });
}

function addRequestLookUp(app: FastifyInstance, jobs: JobService): void {
  app.route<JobRoute>({
    method: 'GET',
    url: '/v2/jobs/:id/request',
    schema: {
      operationId: 'get-job-request',
      summary: 'Look up the request of a job',
      description: 'What was submitted, so that it can be read and sent again. Secrets are left out.',
      tags: ['Jobs'],
      params: jobParams,
      response: {
        200: ok(jobRequestResponse, 'The request.'),
        ...errorResponses([400, 401, 403, 404, 405, 500, 503]),
      },
    },
    handler: async (request, reply) => {
      const id = knownJobId(request.params.id);
      const found = await jobs.record.findRequest(id, scopeOf(request.caller));
      if (found === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
      const path = `/v2${operationNamed(found.operation).path}`;
      const json = `{"method":"POST","path":${JSON.stringify(path)},"body":${found.bodyJson}}`;
      return reply.type('application/json; charset=utf-8').send(json);
    },
  });
}

function addCancel(app: FastifyInstance, jobs: JobService): void {
  const cancel = async (request: FastifyRequest<JobRoute>, reply: FastifyReply): Promise<FastifyReply> => {
    const id = knownJobId(request.params.id);
    const cancelled = await jobs.cancel(id, scopeOf(request.caller));
    if (cancelled === null) throw new AppError('JOB_UNKNOWN', { jobId: id });
    if (cancelled.changed) request.log.info({ job_id: id, caller: request.caller.name ?? undefined }, 'job cancelled');
    return await sendJob(reply.status(cancelled.changed ? 202 : 200), cancelled.job);
  };
  app.route<JobRoute>({
    method: 'DELETE',
    url: '/v2/jobs/:id',
    schema: {
      operationId: 'cancel-job',
      summary: 'Cancel a job',
      description:
        'Inputs that wait are cancelled at once, inputs that run within two seconds, and nothing of what they staged stays behind. What was delivered before stays delivered. A cancelled job ends as `failed`; its unfinished inputs are `cancelled`.',
      tags: ['Jobs'],
      params: jobParams,
      response: {
        200: ok(jobResultResponse, 'The job was cancelled before, or had ended: nothing was changed.'),
        202: ok(jobResultResponse, 'The job is cancelled; inputs may still be stopping.'),
        ...errorResponses([400, 401, 403, 404, 405, 500, 503]),
      },
    },
    // Answered before a body is read: clients that set a content type with every request may send an empty one.
    onRequest: cancel,
    handler: cancel,
  });
}

function addList(app: FastifyInstance, jobs: JobService): void {
  app.route<{ Querystring: JobListQuery }>({
    method: 'GET',
    url: '/v2/jobs',
    schema: {
      operationId: 'list-jobs',
      summary: 'List jobs',
      description:
        'Newest first, a page at a time: those of the caller, or those of all callers for an admin. Jobs that are submitted meanwhile move nothing to another page.',
      tags: ['Jobs'],
      querystring: jobListQuery,
      response: { 200: ok(jobListResponse, 'A page of jobs.'), ...errorResponses([400, 401, 403, 405, 500, 503]) },
    },
    handler: async ({ caller, query: { cursor, caller: submitter, client_reference: clientReference, ...asked } }) => {
      const before = cursor === undefined ? undefined : keyOfCursor(cursor, (key) => JOB_ID.test(key));
      const page = await jobs.list({ ...asked, clientReference, submitter, before, ...scopeOf(caller) });
      const last = page.jobs.at(-1);
      return { jobs: page.jobs, next_cursor: page.more && last !== undefined ? cursorAfter(last.job_id) : null };
    },
  });
}

/** Answers with a job as it is now. */
export function sendJob(reply: FastifyReply, job: JobSnapshot): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(jobJson(job));
}

/** Returns the cursor of the page after an entry. It is encoded because callers must not build cursors themselves. */
export function cursorAfter(key: string): string {
  return Buffer.from(key).toString('base64url');
}

/** Returns the entry that a cursor stands for. Throws `REQUEST_INVALID` for one that `cursorAfter` did not make of such a key. */
export function keyOfCursor(cursor: string, isKey: (key: string) => boolean = () => true): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  if (cursorAfter(key) === cursor && isKey(key)) return key;
  throw new AppError(
    'REQUEST_INVALID',
    { field: 'cursor', problem: 'is none that this service gave out. Give a next_cursor as it is, or none' },
    { field: 'cursor' },
  );
}
