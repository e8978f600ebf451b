import type { z } from 'zod';
import { type ApiErrorResponse, apiErrorResponse } from '#contract/error.ts';

/** The documentation of an error status: its meaning, its header, and an example. */
interface ErrorResponse {
  /** The name under `components.responses`. */
  readonly name: string;
  readonly description: string;
  readonly header?: { readonly name: string; readonly description: string };
  readonly example: ApiErrorResponse['error'];
}

const ERROR_RESPONSES = {
  400: {
    name: 'BadRequest',
    description: '`VALIDATION_FAILED` or `INVALID_INPUT_TYPE`: the request asks for something that cannot be done.',
    example: {
      code: 'INVALID_INPUT_TYPE',
      message: 'Input 1 is a folder (local_folder_path); this operation takes files only.',
      details: {
        field: 'inputs[1].type',
        input_index: 1,
        reason: 'INPUT_IS_FOLDER',
        problems: [
          {
            message: 'Input 1 is a folder (local_folder_path); this operation takes files only.',
            reason: 'INPUT_IS_FOLDER',
            field: 'inputs[1].type',
            input_index: 1,
          },
        ],
      },
    },
  },
  401: {
    name: 'Unauthorized',
    description:
      '`UNAUTHORIZED`: `auth.tokens` is set, and the request brings no token (reason `TOKEN_MISSING`) or none of them (`TOKEN_UNKNOWN`).',
    header: { name: 'WWW-Authenticate', description: 'Always `Bearer`.' },
    example: {
      code: 'UNAUTHORIZED',
      message: 'This service asks for a token.',
      details: { reason: 'TOKEN_MISSING' },
    },
  },
  403: {
    name: 'Forbidden',
    description:
      '`FORBIDDEN`: the caller may not sign with the identity that it asks for. `FORBIDDEN_HOST`: where `auth.tokens` is not set, the `Host` is a dotted name that `server.allowed_hosts` does not list, or the `Origin` differs from it.',
    example: {
      code: 'FORBIDDEN_HOST',
      message: 'This service does not answer under this host name.',
      details: { reason: 'HOST_FORBIDDEN' },
    },
  },
  404: {
    name: 'JobNotFound',
    description: '`JOB_NOT_FOUND`: there is no such job, or it ended longer ago than jobs are kept.',
    example: {
      code: 'JOB_NOT_FOUND',
      message: 'There is no job "0197f3a2".',
      details: { reason: 'JOB_UNKNOWN' },
    },
  },
  405: {
    name: 'MethodNotAllowed',
    description: '`METHOD_NOT_ALLOWED`: the path does not take this method.',
    header: { name: 'Allow', description: 'The methods that the path takes.' },
    example: {
      code: 'METHOD_NOT_ALLOWED',
      message: '/v2/health does not take PUT. It takes GET, HEAD.',
      details: { reason: 'METHOD_UNKNOWN' },
    },
  },
  408: {
    name: 'SyncTimeout',
    description: '`REQUEST_TIMEOUT`: the job did not end within `server.sync_timeout_ms`. It runs on.',
    header: { name: 'Location', description: 'Where to look the job up: `/v2/jobs/{id}`.' },
    example: {
      code: 'REQUEST_TIMEOUT',
      message: 'The job did not end within 120000 ms. It runs on: look it up at /v2/jobs/0197f3a2.',
      details: { reason: 'SYNC_WAIT_ELAPSED' },
    },
  },
  409: {
    name: 'Conflict',
    description:
      '`IDEMPOTENCY_CONFLICT`: the `Idempotency-Key` was sent before with another request. `JOB_NOT_RETRYABLE`: the job has not ended, none of its inputs failed, or the query of an address that they need was erased; `details.input_indexes` has the inputs.',
    example: {
      code: 'IDEMPOTENCY_CONFLICT',
      message: 'This Idempotency-Key was sent before with another request, which became job "0197f3a2".',
      details: { reason: 'IDEMPOTENCY_KEY_REUSED' },
    },
  },
  416: {
    name: 'RangeNotSatisfiable',
    description: '`RANGE_NOT_SATISFIABLE`: the file has none of the bytes that `Range` asks for.',
    header: { name: 'Content-Range', description: 'The size of the file: `bytes */1200000000`.' },
    example: {
      code: 'RANGE_NOT_SATISFIABLE',
      message: 'The file has 1200 bytes, and "Range" asks for none of them.',
      details: { reason: 'RANGE_OUTSIDE_FILE' },
    },
  },
  413: {
    name: 'PayloadTooLarge',
    description: '`PAYLOAD_TOO_LARGE`: the body is over `server.max_upload_bytes`.',
    example: {
      code: 'PAYLOAD_TOO_LARGE',
      message: 'The request body is over the limit of 8388608 bytes.',
      details: { reason: 'BODY_TOO_LARGE' },
    },
  },
  415: {
    name: 'UnsupportedMediaType',
    description: '`UNSUPPORTED_MEDIA_TYPE`: the body is not JSON, or compressed.',
    example: {
      code: 'UNSUPPORTED_MEDIA_TYPE',
      message: 'The request body must be JSON.',
      details: { reason: 'BODY_TYPE_UNSUPPORTED' },
    },
  },
  429: {
    name: 'CallerLimit',
    description:
      '`CALLER_LIMIT`: the caller has used its part of the queue or of the event streams, and the half that all share is full. The rest is reserved for the other callers of `auth.tokens`.',
    header: { name: 'Retry-After', description: 'Seconds after which to try again.' },
    example: {
      code: 'CALLER_LIMIT',
      message: 'This caller has 750 event streams open, and the others of this node are reserved for other callers.',
      details: { reason: 'CALLER_STREAMS_FULL' },
    },
  },
  500: {
    name: 'InternalError',
    description:
      '`INTERNAL_ERROR` or `PROCESSING_FAILED`: something went wrong in the service, or in what it works with. What was accepted is kept.',
    header: { name: 'Retry-After', description: 'Seconds after which to try again, where the cause may pass.' },
    example: {
      code: 'INTERNAL_ERROR',
      message: 'Something went wrong in the service.',
      details: { reason: 'REQUEST_MET_BUG' },
    },
  },
  503: {
    name: 'Overloaded',
    description:
      '`SERVICE_OVERLOADED`: the queue is full, too many large bodies come at once, or the service is stopping. `SERVICE_UNAVAILABLE`: the job store cannot be used just now, nothing can be signed because the signing identity has ended, or a part of the deployment is away and no more inputs can wait for it.',
    header: { name: 'Retry-After', description: 'Seconds after which to try again.' },
    example: { code: 'SERVICE_OVERLOADED', message: 'The queue is full.', details: { reason: 'QUEUE_FULL' } },
  },
} as const satisfies Record<number, ErrorResponse>;

type ErrorStatus = keyof typeof ERROR_RESPONSES;

/** Returns the response schemas of a route's error statuses. */
export function errorResponses(statuses: readonly ErrorStatus[]): Record<number, unknown> {
  return Object.fromEntries(statuses.map((status) => [status, apiErrorResponse]));
}

/** Returns every error response of the document, to stand under `components.responses`. */
export function errorComponents(schemaReference: string): Record<string, object> {
  return Object.fromEntries(
    Object.values<ErrorResponse>(ERROR_RESPONSES).map(({ name, description, header, example }) => [
      name,
      {
        description,
        ...(header && {
          headers: { [header.name]: { description: header.description, schema: { type: 'string' } } },
        }),
        content: { 'application/json': { schema: { $ref: schemaReference }, example: { error: example } } },
      },
    ]),
  );
}

/** Returns the name of the component that describes an error status. */
export function errorComponentName(status: string): string {
  const response = ERROR_RESPONSES[Number(status) as ErrorStatus] as ErrorResponse | undefined;
  if (response === undefined) throw new Error(`the document describes no error with the status ${status}`);
  return response.name;
}

/** Returns a response of JSON with a description of its own. */
export function ok(schema: z.ZodType, description: string, headers?: Readonly<Record<string, object>>): object {
  return { description, ...(headers && { headers }), content: { 'application/json': { schema } } };
}
