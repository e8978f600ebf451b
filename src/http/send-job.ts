import type { FastifyReply } from 'fastify';
import { type JobSnapshot, jobJson } from '#jobs/job.ts';

/** Answers with a job as it is now. */
export function sendJob(reply: FastifyReply, job: JobSnapshot): FastifyReply {
  return reply.type('application/json; charset=utf-8').send(jobJson(job));
}
