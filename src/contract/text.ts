import { z } from 'zod';

/** The longest path, URL, name or token that a request may carry, in UTF-16 code units. */
const MAX_TEXT_LENGTH = 8192;

/**
 * A string that can be stored and used as a name anywhere: not empty, no NUL, and well-formed Unicode (a lone surrogate
 * has no UTF-8 form, so it would silently become another character).
 */
export const text = z
  .string()
  .min(1)
  .max(MAX_TEXT_LENGTH)
  .refine((value) => !value.includes('\0') && value.isWellFormed(), 'holds a NUL or a broken character');

/** The longest path that Linux opens (PATH_MAX without its NUL), and the longest name in it, in bytes of UTF-8. */
const MAX_PATH_BYTES = 4095;
const MAX_NAME_BYTES = 255;

/** Parts between slashes. Every folder above every input is compared with every output, so depth costs memory and time. */
const MAX_PATH_PARTS = 128;

/** A path that the file system can take. Longer ones would cost something to look for, and are never there. */
export const path = text.superRefine((value, context) => {
  const problem =
    Buffer.byteLength(value) > MAX_PATH_BYTES ? `is longer than ${MAX_PATH_BYTES} bytes` : depthProblem(value);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
  else if (value.split('/').some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    context.addIssue({ code: 'custom', message: `holds a name of more than ${MAX_NAME_BYTES} bytes` });
  }
});

/** Returns what is wrong with a path or key that has too many parts; null where it has not. */
export function depthProblem(value: string): string | null {
  return value.split('/').length > MAX_PATH_PARTS ? `has more than ${MAX_PATH_PARTS} parts between its slashes` : null;
}
