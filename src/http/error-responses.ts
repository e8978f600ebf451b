import { apiErrorResponse } from '#contract/error.ts';

/** What each error status means, for the document; the codes are those of the error table. */
const DESCRIPTIONS = {
  400: '`VALIDATION_FAILED` or `INVALID_INPUT_TYPE`: the request asks for something that cannot be done.',
  401: '`UNAUTHORIZED`: `auth.tokens` is set, and the request brings none of them.',
  404: '`JOB_NOT_FOUND`: there is no such job, or it was kept long enough.',
  405: '`METHOD_NOT_ALLOWED`: the `Allow` header lists what the path takes.',
  408: '`REQUEST_TIMEOUT`: the job did not end in time and runs on. The `Location` header says where to look it up.',
  413: '`PAYLOAD_TOO_LARGE`: the body is over `server.max_upload_bytes`.',
  415: '`UNSUPPORTED_MEDIA_TYPE`: the body is not JSON.',
  500: '`INTERNAL_ERROR` or `PROCESSING_FAILED`: something went wrong in the service, or in what it works with.',
  503: '`SERVICE_OVERLOADED`: the queue is full, or the service is stopping. `Retry-After` says when to try again.',
} as const;

type ErrorStatus = keyof typeof DESCRIPTIONS;

/** The response schemas of a route's error statuses. */
export function errorResponses(statuses: readonly ErrorStatus[]): Record<number, unknown> {
  return Object.fromEntries(
    statuses.map((status) => [
      status,
      { description: DESCRIPTIONS[status], content: { 'application/json': { schema: apiErrorResponse } } },
    ]),
  );
}
