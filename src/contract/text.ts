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

/** The ABNF of labels (C2PA 2.2 §6.2): components of letters, digits, "-" and "_", of which the first is a letter or a digit. */
export const namespacedLabel = /^[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9][A-Za-z0-9_-]*)+$/;

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

/** The address of a remote input. Credentials belong into the server's configuration or a presigned query, never here. */
export const sourceUrl = text.superRefine((value, context) => {
  const problem = urlProblem(value, {
    schemes: ['https:', 'http:', 's3:'],
    example: 'https://example.com/video.mp4',
    credentials: 'Use a presigned URL, or S3 access set up on the server',
  });
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

/** The address that the result of a job is posted to. */
export const callbackUrl = text.superRefine((value, context) => {
  const problem = urlProblem(value, {
    schemes: ['https:', 'http:'],
    example: 'https://example.com/signed',
    credentials: 'The signature of a callback proves where it comes from',
  });
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

interface UrlRules {
  readonly schemes: readonly string[];
  readonly example: string;
  /** The remedy that the message names instead of credentials. */
  readonly credentials: string;
}

/** Returns the problem of an address without repeating the address: it may hold a secret. Null where there is none. */
function urlProblem(value: string, { schemes, example, credentials }: UrlRules): string | null {
  if (!URL.canParse(value)) return `is not a URL. Give a whole address, such as ${example}`;
  const url = new URL(value);
  if (!schemes.includes(url.protocol)) {
    const usable = schemes.map((scheme) => `${scheme}//`);
    return `has the scheme "${url.protocol.slice(0, -1)}". Use ${usable.slice(0, -1).join(', ')} or ${usable.at(-1)}`;
  }
  if (url.hostname === '') return 'names no host or bucket';
  if (url.username !== '' || url.password !== '') return `holds credentials. ${credentials}`;
  return url.protocol === 's3:' ? depthProblem(value) : null;
}
