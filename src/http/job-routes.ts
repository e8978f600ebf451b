import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { jobResultResponse } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import { errorResponses } from './error-responses.ts';
import type { JobService } from './job-service.ts';
import { ok } from './ok-response.ts';

/** Every identifier that this service gives out looks like this; anything else need not be looked up. */
const JOB_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Adds the look-up of a job. */
export function addJobRoutes(app: FastifyInstance, jobs: JobService): void {
  app.route<{ Params: { id: string } }>({
    method: 'GET',
    url: '/v2/jobs/:id',
    schema: {
      operationId: 'get-job',
      summary: 'Look up a job',
      description: 'The job as it is now, whether it was submitted to an asynchronous or a synchronous route.',
      tags: ['Jobs'],
      params: z.object({ id: z.string().describe('The job identifier.') }),
      response: { 200: ok(jobResultResponse, 'The job as it is now.'), ...errorResponses([401, 404, 405, 500, 503]) },
    },
    handler: async (request) => {
      const { id } = request.params;
      const job = JOB_ID.test(id) ? await jobs.find(id) : null;
      if (job === null) throw new AppError('JOB_UNKNOWN', { jobId: id.slice(0, 64) });
      return job;
    },
  });
}
