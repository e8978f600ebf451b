import { z } from 'zod';
import { exampleJob, jobResultResponse } from './job.ts';

/** The header that proves where a callback comes from. */
export const SIGNATURE_HEADER = 'X-Attestream-Signature';

const { identity: _, client_reference: __, labels: ___, ...exampleCallback } = exampleJob;

/** The body of a callback. */
export const jobCallback = jobResultResponse
  .extend({
    results_omitted: z
      .literal(true)
      .exactOptional()
      .describe('There are too many results for a callback, so `results` is empty: look the job up.'),
  })
  .meta({
    id: 'JobCallback',
    description: 'What is posted to `callback_url` when the job has ended: the Job result.',
    examples: [exampleCallback],
  });
export type JobCallback = z.infer<typeof jobCallback>;
