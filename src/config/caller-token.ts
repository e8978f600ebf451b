import { createHash } from 'node:crypto';
import { z } from 'zod';

const SHA256 = /^[0-9a-fA-F]{64}$/;
const SHA256_PREFIX = 'sha256:';

const token = z
  .string()
  .refine((value) => /^[\x21-\x7e]{1,4096}$/.test(value), 'must be printable ASCII without spaces')
  .refine(
    (value) => !value.startsWith(SHA256_PREFIX) || SHA256.test(value.slice(SHA256_PREFIX.length)),
    'must have 64 hexadecimal digits after "sha256:"',
  );

/** Letters, digits and a few signs, so that it reads the same in records, logs and the labels of metrics. */
const callerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, ".", "_" and "-"');

const callerTable = z
  .strictObject({
    name: callerName,
    token: token.exactOptional(),
    sha256: z.string().regex(SHA256, 'must have 64 hexadecimal digits').exactOptional(),
    admin: z.boolean().default(false),
  })
  .refine((table) => (table.token === undefined) !== (table.sha256 === undefined), {
    error: 'must have either token or sha256',
  });

/** A bearer token and the caller that it stands for. The token itself is kept nowhere. */
export interface CallerToken {
  /** The SHA-256 of the token, in hexadecimal. */
  readonly digest: string;
  /** The name that jobs are recorded under. Several tokens of one name are one caller, so that they can be rotated. */
  readonly caller: string;
  /** Sees and controls the jobs of all callers. */
  readonly admin: boolean;
}

/** An entry of `auth.tokens`: a token, `sha256:` and its digest, or a table that names the caller. */
const callerToken = z.custom<unknown>().transform((entry, context): CallerToken | typeof z.NEVER => {
  const result =
    typeof entry === 'string' ? token.safeParse(entry) : callerTable.safeParse(entry, { reportInput: true });
  if (result.success) return asCallerToken(result.data);
  for (const issue of result.error.issues) context.issues.push(issue as never);
  return z.NEVER;
});

/** The bearer tokens that are accepted. One token stands for one caller. */
export const callerTokens = z.array(callerToken).superRefine((tokens, context) => {
  tokens.forEach(({ digest, caller, admin }, index) => {
    const first = tokens.findIndex((other) => other.digest === digest);
    const same = tokens[first];
    if (same === undefined || (same.caller === caller && same.admin === admin)) return;
    context.addIssue({
      code: 'custom',
      path: [index],
      message: `is the token of entry ${first} too, as another caller`,
    });
  });
});

function asCallerToken(entry: z.output<typeof callerTable> | string): CallerToken {
  if (typeof entry !== 'string') {
    const digest = entry.sha256?.toLowerCase() ?? digestOf(entry.token ?? '');
    return { digest, caller: entry.name, admin: entry.admin };
  }
  const digest = digestOf(entry);
  return { digest, caller: unnamedCaller(digest), admin: false };
}

function digestOf(given: string): string {
  return given.startsWith(SHA256_PREFIX) ? given.slice(SHA256_PREFIX.length).toLowerCase() : sha256(given);
}

/** Names the caller of a token without a name: the same at every start and on every node, and of no use to guess a good token. */
function unnamedCaller(digest: string): string {
  return `token-${sha256(digest).slice(0, 8)}`;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
