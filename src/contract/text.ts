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
