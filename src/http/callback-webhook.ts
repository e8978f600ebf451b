import { jobCallback, SIGNATURE_HEADER } from '#contract/job-callback.ts';

/** What the document says of the requests that this service sends to a `callback_url`. */
export const CALLBACK_WEBHOOKS = {
  jobEnded: {
    post: {
      operationId: 'job-ended',
      summary: 'A job has ended',
      description:
        'Sent to the `callback_url` of a submission, at least once: tell repetitions by `job_id`. Anything but a 2xx answer within 15 seconds is a failure, also a redirect; it is tried again after 5 seconds, then ever more slowly, for a day after the end of the job.',
      tags: ['Jobs'],
      security: [],
      parameters: [
        {
          name: SIGNATURE_HEADER,
          in: 'header',
          required: true,
          description:
            '`t=<unix seconds>,v1=<hex>`: the HMAC-SHA256 of `<t>.<body>` with `callbacks.secret`. Compute it over the bytes as they came, compare in constant time, and refuse a time that is minutes away.',
          schema: { type: 'string' },
        },
      ],
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: { $ref: `#/components/schemas/${jobCallback.meta()?.id}` } },
        },
      },
      responses: { '2XX': { description: 'The callback was taken.' } },
    },
  },
} as const;
