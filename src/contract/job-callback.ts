import { z } from 'zod';
import { exampleId, jobResultResponse } from './job.ts';

/** The header that proves where a callback comes from. */
export const SIGNATURE_HEADER = 'X-Attestream-Signature';

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
    examples: [
      {
        job_id: exampleId,
        status: 'succeeded',
        operation: 'c2pa-video',
        input_count: 1,
        input_names: ['interview.mp4'],
        results: [
          {
            input_index: 0,
            input_name: 'interview.mp4',
            status: 'succeeded',
            output_path: '/srv/signed/newsroom/interview_c2pa.mp4',
          },
        ],
        counts: { succeeded: 1, failed: 0, cancelled: 0 },
        timing: {
          queued_at: '2026-11-21T10:00:00.000Z',
          started_at: '2026-11-21T10:00:00.004Z',
          finished_at: '2026-11-21T10:00:01.350Z',
        },
      },
    ],
  });
export type JobCallback = z.infer<typeof jobCallback>;
