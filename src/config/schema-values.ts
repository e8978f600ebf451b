import { z } from 'zod';

const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;

/** A path as it stands in the file; `loadConfig` makes it absolute. */
export const path = z
  .string()
  .min(1, 'must not be empty')
  .refine((value) => !value.includes('\0'), 'must not hold a NUL');
export const timeoutMs = z.int().min(1).max(MAX_TIMEOUT_MS);

export const url = z
  .string()
  .refine(
    (value) => URL.canParse(value) && /^https?:$/.test(new URL(value).protocol),
    'must be a URL with the scheme https or http',
  );

/** Letters, digits and a few signs, so that it reads the same in records, logs and the labels of metrics. */
export const callerName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be 1 to 64 letters, digits, ".", "_" and "-"');
