import { entry, listNames, type NameSample } from '../entry.ts';

/** Errors of a request, apart from the media that it names. */
export const requestErrors = {
  REQUEST_INVALID: entry<{ field: string | null; problem: string }>('VALIDATION_FAILED', ({ field, problem }) =>
    field === null ? `The request body ${problem}.` : `The field "${field}" ${problem}.`,
  ),
  REQUEST_NOT_JSON: entry<{ problem: string }>(
    'VALIDATION_FAILED',
    ({ problem }) => `The request body is not usable JSON: ${problem}.`,
  ),
  REQUEST_MALFORMED: entry<{ problem: string }>('VALIDATION_FAILED', ({ problem }) => `The request ${problem}.`),
  REQUEST_MET_BUG: entry<{ requestId: string }>(
    'INTERNAL_ERROR',
    ({ requestId }) => `Something went wrong in the service. Its log tells what, under the request id ${requestId}.`,
  ),
  REQUEST_TOO_SLOW: entry<object>(
    'REQUEST_TIMEOUT',
    () => 'The request did not arrive whole in time. Send it again over a better connection.',
    { class: 'retry' },
  ),
  BODY_TOO_LARGE: entry<{ limitBytes: number }>(
    'PAYLOAD_TOO_LARGE',
    ({ limitBytes }) =>
      `The request body is over the limit of ${limitBytes} bytes. Split the request, or raise server.max_upload_bytes.`,
  ),
  BODIES_TOO_LARGE_TOGETHER: entry<object>(
    'SERVICE_OVERLOADED',
    () => 'Other requests with large bodies are being received just now. Send it again later, or split it.',
    { class: 'retry' },
  ),
  ANSWERS_TOO_LARGE_TOGETHER: entry<object>(
    'SERVICE_OVERLOADED',
    () => 'Other clients are being sent large answers just now. Send the request again later.',
    { class: 'retry' },
  ),
  BODY_TYPE_UNSUPPORTED: entry<object>(
    'UNSUPPORTED_MEDIA_TYPE',
    () => 'The request body must be JSON: send the header "Content-Type: application/json".',
  ),
  BODY_ENCODING_UNSUPPORTED: entry<object>(
    'UNSUPPORTED_MEDIA_TYPE',
    () => 'The request body is compressed, and taken as it is alone: send it without the header "Content-Encoding".',
  ),
  ROUTE_UNKNOWN: entry<{ method: string; path: string; documented: boolean }>(
    'NOT_FOUND',
    ({ method, path, documented }) =>
      `There is nothing at ${method} ${path}. ${documented ? 'The routes are listed in /openapi.json.' : 'Check the path.'}`,
  ),
  METHOD_UNKNOWN: entry<{ method: string; path: string; allowed: readonly string[] }>(
    'METHOD_NOT_ALLOWED',
    ({ method, path, allowed }) => `${path} does not take ${method}. It takes ${allowed.join(', ')}.`,
  ),
  TOKEN_MISSING: entry<object>(
    'UNAUTHORIZED',
    () => 'This service asks for a token: send the header "Authorization: Bearer <token>" with one that it knows.',
  ),
  TOKEN_UNKNOWN: entry<object>(
    'UNAUTHORIZED',
    () =>
      'The service does not know this token. Check that it is complete, and is not the digest in its place; an operator adds its digest to auth.tokens, and reloads the configuration.',
  ),
  LOGIN_FORGED: entry<object>(
    'FORBIDDEN_HOST',
    () =>
      'The request is authorized by the cookie of a login alone, and does not come from a page of this address (its header "Origin" is missing or differs from "Host"). Programs send "Authorization: Bearer <token>"; a proxy in between has to pass "Host" on.',
  ),
  IDENTITY_UNKNOWN: entry<{ identity: string; identities: readonly string[] }>(
    'VALIDATION_FAILED',
    ({ identity, identities }) =>
      `There is no signing identity "${identity}". Ask for one that this caller may use: ${identities.join(', ')}.`,
  ),
  IDENTITY_FORBIDDEN: entry<{ identity: string; identities: readonly string[] }>(
    'FORBIDDEN',
    ({ identity, identities }) =>
      `This caller may not sign with the identity "${identity}". Ask for one that it may use (${identities.join(', ')}), or have the operator add it to the caller's identities under [auth.callers].`,
  ),
  ADMIN_NEEDED: entry<object>(
    'NOT_FOUND',
    () =>
      'The configuration is shown to admins only, and reloaded for them: ask with a token that has "admin": true in auth.tokens.',
  ),
  RELOAD_REFUSED: entry<{ cause: string; problem: string }>(
    'VALIDATION_FAILED',
    ({ problem }) => `The configuration cannot be reloaded, and everything stays as it was. ${problem}`,
  ),
  INPUTS_NOT_BROWSABLE: entry<object>(
    'NOT_FOUND',
    () =>
      'Folders of inputs are listed only where the operator has set input_resolvers.local.roots. Inputs can be named by their paths all the same.',
  ),
  INPUT_FOLDER_UNUSABLE: entry<{ problem: string }>(
    'NOT_FOUND',
    ({ problem }) => `The folder cannot be listed. ${problem}`,
  ),
  HOST_FORBIDDEN: entry<object>(
    'FORBIDDEN_HOST',
    () =>
      'This service has no tokens set, and then answers only under an IP address, a name without a dot (such as localhost), or a name listed in server.allowed_hosts: a web page could use it under any other. Address it by one of these, let the operator add the name to server.allowed_hosts, or set auth.tokens.',
  ),
  ORIGIN_FORBIDDEN: entry<object>(
    'FORBIDDEN_HOST',
    () =>
      'The request comes from a web page of another origin (its header "Origin" differs from "Host"), and a service without tokens serves none. Send it from a page of this address or without a browser, or let the operator set auth.tokens.',
  ),
  JOB_UNKNOWN: entry<{ jobId: string }>(
    'JOB_NOT_FOUND',
    ({ jobId }) => `There is no job "${jobId}". Finished jobs are kept for the hours set in jobs.retention_hours.`,
  ),
  OUTPUT_FILE_UNKNOWN: entry<{ jobId: string; inputIndex: string; path: string }>(
    'NOT_FOUND',
    ({ jobId, inputIndex, path }) =>
      path === ''
        ? `Input ${inputIndex} of job "${jobId}" has no output: the job has no such input, it has not succeeded, or its output was removed since. The job says which: /v2/jobs/${jobId}.`
        : `Input ${inputIndex} of job "${jobId}" has no output file "${path}": the input has not succeeded, the name is another, or the file was removed since. The files are listed at /v2/jobs/${jobId}/outputs/${inputIndex}.`,
  ),
  RANGE_OUTSIDE_FILE: entry<{ sizeBytes: number }>(
    'RANGE_NOT_SATISFIABLE',
    ({ sizeBytes }) => `The file has ${sizeBytes} bytes, and the header "Range" asks for none of them.`,
  ),
  SYNC_WAIT_ELAPSED: entry<{ jobId: string; waitedMs: number; causes: readonly string[] }>(
    'REQUEST_TIMEOUT',
    ({ jobId, waitedMs, causes }) =>
      [`The job did not end within ${waitedMs} ms. It runs on: look it up at /v2/jobs/${jobId}.`, ...causes].join(' '),
    { class: 'retry' },
  ),
  SERVICE_STOPPING: entry<{ jobId?: string }>(
    'SERVICE_OVERLOADED',
    ({ jobId }) =>
      jobId === undefined
        ? 'The service is stopping and takes no more requests. Try again in a moment.'
        : `The service is stopping. The job is kept and goes on at the next start: look it up at /v2/jobs/${jobId}.`,
    { class: 'retry' },
  ),
  TOO_MANY_INPUTS: entry<{ count: number; limit: number }>(
    'VALIDATION_FAILED',
    ({ count, limit }) => `The request has ${count} inputs; ${limit} are allowed. Split it into several requests.`,
  ),
  INPUT_IS_FOLDER: entry<{ type: string; inputIndex: number }>(
    'INVALID_INPUT_TYPE',
    ({ type, inputIndex }) =>
      `Input ${inputIndex} is a folder (${type}); this operation takes files only. Name a file in it, or sign the whole folder at /v2/c2pa/fragmented or /v2/c2pa/package.`,
  ),
  INPUT_IS_FILE: entry<{ type: string; inputIndex: number }>(
    'INVALID_INPUT_TYPE',
    ({ type, inputIndex }) =>
      `Input ${inputIndex} is a file (${type}); this operation takes folders only. Name the folder that it lies in, or sign the file alone at /v2/c2pa/video or /v2/c2pa/audio.`,
  ),
  INPUT_EXTENSION_REFUSED: entry<{ name: string; problem: string }>(
    'INVALID_INPUT_TYPE',
    ({ name, problem }) => `"${name}" cannot be signed here: ${problem}.`,
  ),
  S3_OUTPUT_UNAVAILABLE: entry<object>(
    'VALIDATION_FAILED',
    () => 'Outputs of the type "s3" are not enabled in this deployment. Use the type "local".',
  ),
  OVERRIDE_OUT_OF_RANGE: entry<{ inputIndex: number; inputCount: number }>(
    'VALIDATION_FAILED',
    ({ inputIndex, inputCount }) =>
      `An entry is for input ${inputIndex}, but the last input of the request is ${inputCount - 1}: they are counted from zero.`,
  ),
  OVERRIDE_REPEATED: entry<{ inputIndex: number }>(
    'VALIDATION_FAILED',
    ({ inputIndex }) => `Input ${inputIndex} has more than one entry in this list. Keep one.`,
  ),
  REPORTS_TOO_MANY: entry<{ report: string; count: number; limit: number }>(
    'VALIDATION_FAILED',
    ({ report, count, limit }) =>
      `The request asks for reports of the kind "${report}" about ${count} inputs; ${limit} are allowed. Split it, or ask for summaries and name an \`output\`: full reports are written there.`,
  ),
};

/** Errors of idempotency keys, retries, callbacks and event streams. */
export const controlErrors = {
  IDEMPOTENCY_KEY_MALFORMED: entry<{ limit: number }>(
    'VALIDATION_FAILED',
    ({ limit }) =>
      `The header Idempotency-Key must be sent once, with 1 to ${limit} printable ASCII characters without spaces. A UUID will do.`,
  ),
  IDEMPOTENCY_KEY_REUSED: entry<{ jobId: string }>(
    'IDEMPOTENCY_CONFLICT',
    ({ jobId }) =>
      `This Idempotency-Key was sent before with another request, which became job "${jobId}". Send that request, or use a new key.`,
  ),
  JOB_NOT_ENDED: entry<{ jobId: string }>(
    'JOB_NOT_RETRYABLE',
    ({ jobId }) => `Job "${jobId}" has not ended. Retry it when it has.`,
  ),
  NOTHING_TO_RETRY: entry<{ jobId: string; statuses: readonly string[] }>(
    'JOB_NOT_RETRYABLE',
    ({ jobId, statuses }) =>
      `There is nothing to retry in job "${jobId}": none of its inputs has the status ${statuses.map((status) => `"${status}"`).join(' or ')} and is asked for. Cancelled inputs are retried where "statuses" has "cancelled".`,
  ),
  QUERY_ERASED: entry<NameSample>(
    'JOB_NOT_RETRYABLE',
    (names) =>
      `The queries of addresses that these inputs need were erased when their job ended, because they may grant access: ${listNames(names)}. Submit them again with new addresses.`,
  ),
  CALLBACKS_OFF: entry<object>(
    'VALIDATION_FAILED',
    () => 'This deployment sends no callbacks: callbacks.secret is not set. Leave callback_url out and poll the job.',
  ),
  CALLBACK_DENIED: entry<{ host: string }>(
    'VALIDATION_FAILED',
    ({ host }) =>
      `"${host}" is an address that this service does not connect to. The operator sets these as input_resolvers.http.deny_networks; link-local addresses and those of cloud metadata are always among them.`,
  ),
  EVENT_STREAMS_FULL: entry<{ limit: number }>(
    'SERVICE_OVERLOADED',
    ({ limit }) => `All ${limit} event streams of this node are in use. Try again later, or poll the job.`,
    { class: 'retry' },
  ),
  CALLER_STREAMS_FULL: entry<{ open: number }>(
    'CALLER_LIMIT',
    ({ open }) =>
      `This caller has ${open} event streams open, and the others of this node are reserved for other callers. Close some, try again later, or poll the job.`,
    { class: 'retry' },
  ),
};
