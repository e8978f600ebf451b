import { z } from 'zod';

/** The name of an identity: `params.identity`, keys of `signing.identities`, labels of metrics and logs. */
export const identityName = z
  .string()
  .regex(/^[a-z0-9_]{1,32}$/, 'must be 1 to 32 lower-case letters, digits and underscores');
