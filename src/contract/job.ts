import { z } from 'zod';
import { MAX_INPUT_NAMES, MAX_LISTED_INPUT_NAMES } from './input-name-limits.ts';
import { clientReference } from './job-labels.ts';
import { verification } from './verification.ts';

export const operationName = z
  .enum(['c2pa-video', 'c2pa-audio', 'c2pa-fragmented', 'c2pa-package', 'package', 'verify'])
  .describe('The operation, as `operationId` names it.');
export type OperationName = z.infer<typeof operationName>;

/** The job of the examples. */
export const exampleId = '0197f3a2-5d5c-7c3e-9b1a-2f64d1c0a7e5';

export const jobStatus = z
  .enum(['queued', 'running', 'succeeded', 'failed'])
  .describe('`succeeded` and `failed` are final. A job of which any input failed or was cancelled is `failed`.');
export type JobStatus = z.infer<typeof jobStatus>;

export const jobResponse = z
  .object({
    job_id: z.string().describe('The identifier for `GET /v2/jobs/{id}`.'),
    status: jobStatus,
  })
  .meta({
    id: 'JobResponse',
    description: 'A job that was accepted.',
    examples: [{ job_id: exampleId, status: 'queued' }],
  });
export type JobResponse = z.infer<typeof jobResponse>;

const timestamp = z.iso.datetime().describe('ISO 8601, UTC, with milliseconds.');

export const jobResultEntry = z
  .object({
    input_index: z.int().min(0).describe('Position in the `inputs` of the request, counted from zero.'),
    input_name: z
      .string()
      .exactOptional()
      .describe(
        'The name of the input, without its path and the query of its address. Absent in results of older releases.',
      ),
    status: z.enum(['succeeded', 'failed', 'cancelled']),
    output_path: z
      .string()
      .exactOptional()
      .describe(
        'Where the output is: an absolute path, or `s3://bucket/key`. Only where the input succeeded; of `verify`, only where reports are written.',
      ),
    sidecar_path: z
      .string()
      .exactOptional()
      .describe(
        'Where the manifest is that belongs to the output, with `params.manifest: "sidecar"`; `output_path` is the copy of the file, or the sidecar where it was delivered alone.',
      ),
    verification: verification.exactOptional().describe('The verdict. Only of `verify`, where the input succeeded.'),
    error: z.string().exactOptional().describe('What went wrong, for people. Only where the input failed.'),
    error_code: z.string().exactOptional().describe('A code of the error table.'),
    error_details: z
      .looseObject({ reason: z.string().describe('A stable name of what went wrong.') })
      .exactOptional()
      .describe('What went wrong, for programs.'),
    warnings: z
      .array(z.string())
      .exactOptional()
      .describe('What to know about an output that was made all the same, for people.'),
    warning_details: z
      .array(z.looseObject({ reason: z.string().describe('A stable name of the warning.') }))
      .exactOptional()
      .describe(
        'The same for programs: an entry for each of `warnings`, in the same order, with what its sentence is made from. Results that an older release recorded have none.',
      ),
  })
  .meta({ id: 'JobResultEntry', description: 'What became of one input.' });
export type JobResultEntry = z.infer<typeof jobResultEntry>;

export const jobTiming = z
  .object({
    queued_at: timestamp,
    started_at: timestamp.exactOptional(),
    finished_at: timestamp.exactOptional(),
  })
  .meta({ id: 'JobTiming', description: 'When the job was accepted, started and ended, as far as it has.' });
export type JobTiming = z.infer<typeof jobTiming>;

export const jobProgress = z
  .object({
    inputs_done: z.int().min(0),
    inputs_total: z.int().min(0),
    bytes_done: z.int().min(0),
    bytes_total: z.int().min(0).describe('Grows as inputs are opened: a size is known only then.'),
    fraction: z
      .number()
      .min(0)
      .max(1)
      .describe(
        'The part of the job that is done. Every input counts the same, opened or not; a running one by its bytes.',
      ),
  })
  .meta({ id: 'JobProgress', description: 'How far a job is that has not ended.' });
export type JobProgress = z.infer<typeof jobProgress>;

export const waitingFor = z
  .object({
    dependency: z
      .string()
      .describe(
        'The part of the deployment that is away: its kind and, for admins, behind a colon its name, such as `output_bucket:media`.',
      ),
    reason: z.string().describe('A stable name of what one of the inputs met.'),
    message: z.string().describe('The same for people.'),
    since: timestamp.describe('When the first of the inputs met it.'),
    inputs: z.int().min(1).describe('The number of inputs that wait for it.'),
  })
  .meta({
    id: 'WaitingFor',
    description:
      'What inputs of a job wait for: they have not failed, and go on by themselves when it is back. Absent where none waits for anything but its turn.',
  });
export type WaitingFor = z.infer<typeof waitingFor>;
export const jobCounts = z
  .object({
    succeeded: z.int().min(0),
    failed: z.int().min(0),
    cancelled: z.int().min(0),
  })
  .meta({ id: 'JobCounts', description: 'How many inputs have ended, by their status.' });

/** The job of the examples when it has ended. */
export const exampleJob = {
  job_id: exampleId,
  status: 'succeeded' as const,
  operation: 'c2pa-video' as const,
  identity: 'default',
  client_reference: 'order-4711',
  labels: { project: 'evening-news' },
  input_count: 1,
  input_names: ['interview.mp4'],
  results: [
    {
      input_index: 0,
      input_name: 'interview.mp4',
      status: 'succeeded' as const,
      output_path: '/srv/signed/newsroom/interview_c2pa.mp4',
    },
  ],
  counts: { succeeded: 1, failed: 0, cancelled: 0 },
  timing: {
    queued_at: '2026-11-21T10:00:00.000Z',
    started_at: '2026-11-21T10:00:00.004Z',
    finished_at: '2026-11-21T10:00:01.350Z',
  },
};

export const jobResultResponse = z
  .object({
    job_id: z.string(),
    status: jobStatus,
    operation: operationName,
    caller: z
      .string()
      .exactOptional()
      .describe('Who submitted it: the name of its token in `auth.tokens`. Absent where no tokens were set.'),
    identity: z
      .string()
      .exactOptional()
      .describe(
        'The identity that its outputs are signed with, settled when it was submitted. Absent where nothing is signed.',
      ),
    client_reference: clientReference.exactOptional(),
    labels: z.record(z.string(), z.string()).exactOptional().describe('The labels of the request.'),
    retried_from: z
      .string()
      .exactOptional()
      .describe('The job whose failed inputs it runs again; it may have been deleted since. Only of a retry.'),
    input_count: z.int().min(1).describe('The number of inputs in the request.'),
    input_names: z
      .array(z.string())
      .describe(
        `The names of the first inputs, without their paths and the queries of their addresses: ${MAX_INPUT_NAMES} at most, ${MAX_LISTED_INPUT_NAMES} in a list. Those of all are in \`results\`. Empty for jobs of older releases.`,
      ),
    results: z.array(jobResultEntry).describe('One entry for each input; empty until the job has ended.'),
    counts: jobCounts,
    first_reason: z
      .string()
      .exactOptional()
      .describe('The reason (`error_details.reason`) of the input that failed first; absent where none has.'),
    timing: jobTiming,
    progress: jobProgress.exactOptional(),
    waiting_for: z.array(waitingFor).exactOptional(),
  })
  .meta({
    id: 'JobResultResponse',
    description: 'A job as it is now.',
    examples: [
      exampleJob,
      {
        job_id: exampleId,
        status: 'running',
        operation: 'c2pa-video',
        input_count: 1,
        input_names: ['interview.mp4'],
        results: [],
        counts: { succeeded: 0, failed: 0, cancelled: 0 },
        timing: { queued_at: '2026-11-21T10:00:00.000Z', started_at: '2026-11-21T10:00:00.004Z' },
        progress: { inputs_done: 0, inputs_total: 1, bytes_done: 524288000, bytes_total: 1200000000, fraction: 0.4369 },
      },
      {
        job_id: exampleId,
        status: 'failed',
        operation: 'c2pa-video',
        input_count: 1,
        input_names: ['notes.txt'],
        results: [
          {
            input_index: 0,
            input_name: 'notes.txt',
            status: 'failed',
            error: '"notes.txt" is none of the containers that can carry a manifest here.',
            error_code: 'INVALID_INPUT_TYPE',
            error_details: { reason: 'FORMAT_UNKNOWN' },
          },
        ],
        counts: { succeeded: 0, failed: 1, cancelled: 0 },
        first_reason: 'FORMAT_UNKNOWN',
        timing: {
          queued_at: '2026-11-21T10:00:00.000Z',
          started_at: '2026-11-21T10:00:00.004Z',
          finished_at: '2026-11-21T10:00:00.020Z',
        },
      },
    ],
  });
export type JobResultResponse = z.infer<typeof jobResultResponse>;

export const jobRequestResponse = z
  .object({
    method: z.literal('POST'),
    path: z.string().describe('The asynchronous route of the operation.'),
    body: z
      .looseObject({})
      .describe('What was submitted. Queries of addresses and `callback_url` are left out: they may grant access.'),
  })
  .meta({
    id: 'JobRequestResponse',
    description: 'The request that a job was made from.',
    examples: [
      {
        method: 'POST',
        path: '/v2/c2pa/video',
        body: { inputs: [{ type: 'local_file_path', path: '/media/interview.mp4' }], params: { parent: null } },
      },
    ],
  });
export type JobRequestResponse = z.infer<typeof jobRequestResponse>;
