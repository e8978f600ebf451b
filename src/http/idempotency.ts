import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import type { Caller } from '#jobs/caller.ts';
import type { IdempotencyKey } from '#jobs/idempotency-key.ts';
import type { OperationName } from '#operations/operation.ts';

const MAX_KEY_LENGTH = 255;

/** Printable ASCII without the space: a header that was sent twice arrives joined by a comma and a space. */
const KEY = /^[\x21-\x7e]+$/;

/** What the document says of the header; a malformed key is refused by `idempotencyOf`. */
export const idempotencyHeaders = z.looseObject({
  'idempotency-key': z
    .string()
    .optional()
    .describe(
      `1 to ${MAX_KEY_LENGTH} printable ASCII characters, such as a UUID. The same key with the same request is answered with the same job for as long as the job is kept (\`jobs.retention_hours\`), and with the header \`Idempotent-Replayed: true\`; with another request it is answered 409.`,
    ),
});

/**
 * The idempotency key of a submission with a digest of what was asked for; null where it has none. The synchronous
 * and the asynchronous form of an operation ask for the same. Every caller has keys of its own.
 */
export function idempotencyOf(
  headers: IncomingHttpHeaders,
  operation: OperationName,
  body: object,
  caller: Caller,
): IdempotencyKey | null {
  const key = headers['idempotency-key'];
  if (key === undefined) return null;
  if (typeof key !== 'string' || key.length > MAX_KEY_LENGTH || !KEY.test(key)) {
    throw new AppError('IDEMPOTENCY_KEY_MALFORMED', { limit: MAX_KEY_LENGTH });
  }
  return {
    // A key holds no space, so no two callers can mean the same by theirs.
    key: caller.name === null ? key : `${caller.name} ${key}`,
    digest: createHash('sha256')
      .update(`${operation} ${JSON.stringify(body)}`)
      .digest('hex'),
  };
}
