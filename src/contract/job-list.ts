import { z } from 'zod';
import { exampleId, exampleJob, jobResultResponse, jobStatus, operationName } from './job.ts';
import { clientReference, labelFilter } from './job-labels.ts';

const MAX_JOBS_PER_PAGE = 200;
const JOBS_PER_PAGE = 50;

/** Longer than the name of any caller in `auth.tokens`. */
const MAX_CALLER_LENGTH = 64;

/** In a query everything is text, so numbers are read from it; `0x10` and `1e2` are none. Fractions are left to the schema. */
export const wholeNumber = (value: unknown): unknown =>
  /^-?\d{1,9}(?:\.\d{1,9})?$/.test(String(value)) ? Number(value) : value;

/** The query of the list of jobs: a filter and a page. */
export const jobListQuery = z.strictObject({
  status: jobStatus.optional().describe('Only jobs of this status.'),
  operation: operationName.optional().describe('Only jobs of this operation.'),
  client_reference: clientReference.optional().describe('Only jobs with this `client_reference`.'),
  label: labelFilter.optional(),
  caller: z
    .string()
    .min(1)
    .max(MAX_CALLER_LENGTH)
    .optional()
    .describe('Only jobs of this caller. Somebody who is no admin sees its own jobs only, whatever is asked for.'),
  limit: z
    .preprocess(wholeNumber, z.int().min(1).max(MAX_JOBS_PER_PAGE).default(JOBS_PER_PAGE))
    .describe('Jobs of one page.'),
  cursor: z.string().max(256).optional().describe('The `next_cursor` of the page before.'),
});
export type JobListQuery = z.infer<typeof jobListQuery>;

/** A Job result without `results`: a batch may have 10,000 of them. */
export const listedJob = jobResultResponse.omit({ results: true }).meta({
  id: 'ListedJob',
  description: 'A job as it is now, without its results.',
  examples: [
    {
      job_id: exampleId,
      status: 'running',
      operation: 'c2pa-video',
      client_reference: 'order-4711',
      labels: { project: 'evening-news' },
      input_count: 3,
      input_names: ['interview.mp4', 'street.mov', 'studio.mp4'],
      counts: { succeeded: 1, failed: 1, cancelled: 0 },
      first_reason: 'SOURCE_NOT_FOUND',
      timing: { queued_at: '2026-11-21T10:00:00.000Z', started_at: '2026-11-21T10:00:00.004Z' },
      progress: { inputs_done: 2, inputs_total: 3, bytes_done: 524288000, bytes_total: 1200000000, fraction: 0.6667 },
    },
  ],
});
export type ListedJob = z.infer<typeof listedJob>;

export const jobListResponse = z
  .object({
    jobs: z.array(listedJob).describe('Newest first.'),
    next_cursor: z.string().nullable().describe('Give it as `cursor` for the next page; null on the last one.'),
  })
  .meta({
    id: 'JobListResponse',
    description: 'A page of jobs.',
    examples: [
      {
        jobs: [
          {
            job_id: exampleId,
            status: 'succeeded',
            operation: 'c2pa-audio',
            input_count: 1,
            input_names: ['podcast.mp3'],
            counts: { succeeded: 1, failed: 0, cancelled: 0 },
            timing: exampleJob.timing,
          },
        ],
        next_cursor: null,
      },
    ],
  });
export type JobListResponse = z.infer<typeof jobListResponse>;
