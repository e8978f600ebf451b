import { entry } from './entry.ts';

/** What can be wrong with how a caller follows and controls its jobs. */
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
    { transient: true },
  ),
};
