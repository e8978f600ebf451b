import { z } from 'zod';
import { catalogue } from '#errors/catalogue.ts';
import { exampleId, operationName } from './job.ts';
import { inputRequestFields } from './request.ts';

/** The most jobs that one request to retry jobs makes. */
export const MAX_RETRY_JOBS = 1_000;

const MAX_REASONS = 100;

const reasons = z
  .array(
    z.string().refine((reason) => Object.hasOwn(catalogue, reason), 'is no reason of this release. Check the spelling'),
  )
  .min(1)
  .max(MAX_REASONS)
  .describe('Only inputs that failed with one of these reasons (`error_details.reason`).');

/** The body of a retry, which may be left out. */
export const retryRequest = z
  .strictObject({
    reasons: reasons.optional(),
    input_indexes: z.array(z.int().min(0)).min(1).optional().describe('Only these inputs of the job.'),
    statuses: z
      .array(z.enum(['failed', 'cancelled']))
      .min(1)
      .optional()
      .describe('Only inputs of these statuses; those that failed unless given.'),
    callback_url: inputRequestFields.callback_url,
  })
  .default({})
  .meta({
    id: 'RetryRequest',
    description: 'The choice of inputs, and what a retry does not take from its job. The body may be left out.',
    examples: [
      {},
      { callback_url: 'https://example.com/signed' },
      { statuses: ['failed', 'cancelled'], reasons: ['S3_UNREACHABLE'], input_indexes: [0, 3] },
    ],
  });
export type RetryRequest = z.infer<typeof retryRequest>;

const time = z.iso.datetime({ offset: true });

/** The body of a request to retry jobs, which may be left out. */
export const retryJobsRequest = z
  .strictObject({
    reasons: reasons.optional(),
    since: time.optional().describe('Only jobs that ended then or later: ISO 8601 with a time zone.'),
    until: time.optional().describe('Only jobs that ended before.'),
    operation: operationName.optional().describe('Only jobs of this operation.'),
  })
  .default({})
  .meta({
    id: 'RetryJobsRequest',
    description: 'The choice of failed inputs. The body may be left out.',
    examples: [
      {},
      { reasons: ['S3_UNREACHABLE'], since: '2026-11-21T10:00:00.000Z', until: '2026-11-21T11:00:00.000Z' },
    ],
  });
export type RetryJobsRequest = z.infer<typeof retryJobsRequest>;

export const retryJobsResponse = z
  .object({
    jobs: z.array(z.string()).max(MAX_RETRY_JOBS).describe('The new jobs, in the order of those that they retry.'),
    left_out: z
      .int()
      .min(0)
      .describe(
        'The failed inputs of the choice that no new job has: a retry has them already, the query of their address was erased, or their job would be refused by the configuration as it is now.',
      ),
    more: z.boolean().describe('True where there may be more to retry: send the request again.'),
  })
  .meta({
    id: 'RetryJobsResponse',
    description: 'The jobs that retry others.',
    examples: [{ jobs: [exampleId], left_out: 2, more: false }],
  });
export type RetryJobsResponse = z.infer<typeof retryJobsResponse>;
