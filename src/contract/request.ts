import { z } from 'zod';
import { clientReference, jobLabels } from './job-labels.ts';

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

/** Returns true for a language tag (BCP 47). */
export function isLanguage(value: string): boolean {
  try {
    return Intl.getCanonicalLocales(value).length === 1;
  } catch {
    // The only thing that is thrown here is that it is none.
    return false;
  }
}

/** The name of an identity: `params.identity`, keys of `signing.identities`, labels of metrics and logs. */
export const identityName = z
  .string()
  .regex(/^[a-z0-9_]{1,32}$/, 'must be 1 to 32 lower-case letters, digits and underscores');

/** The longest glob, in UTF-16 code units. */
export const MAX_GLOB_LENGTH = 1_000;

/** A glob on the paths of a folder. */
export const glob = text.max(MAX_GLOB_LENGTH);

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
function depthProblem(value: string): string | null {
  return value.split('/').length > MAX_PATH_PARTS ? `has more than ${MAX_PATH_PARTS} parts between its slashes` : null;
}

/** The address of a remote input. Credentials belong into the server's configuration or a presigned query, never here. */
const sourceUrl = text.superRefine((value, context) => {
  const problem = urlProblem(value, {
    schemes: ['https:', 'http:', 's3:'],
    example: 'https://example.com/video.mp4',
    credentials: 'Use a presigned URL, or S3 access set up on the server',
  });
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

/** The address that the result of a job is posted to. */
const callbackUrl = text.superRefine((value, context) => {
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

const filenameHint = text
  .nullish()
  .describe('A file name to go by where the URL has none; it decides the name of the output.');

export const localFilePath = z
  .strictObject({
    type: z.literal('local_file_path'),
    path: path.describe(
      'A path on the host of the service; a relative one starts at the folder that it was started in.',
    ),
  })
  .describe('A file on the service host.');

export const remoteFileUrl = z
  .strictObject({
    type: z.literal('remote_file_url'),
    url: sourceUrl.describe('An `https://`, `http://` or `s3://` address.'),
    filename_hint: filenameHint,
  })
  .describe('A file at an HTTP(S) or S3 address. A presigned URL grants access without credentials in the request.');

const localFolderPath = z
  .strictObject({
    type: z.literal('local_folder_path'),
    path: path.describe(
      'A path on the host of the service; a relative one starts at the folder that it was started in.',
    ),
  })
  .describe('A folder on the service host.');

const remoteFolderUrl = z
  .strictObject({
    type: z.literal('remote_folder_url'),
    url: sourceUrl.describe('An `https://`, `http://` or `s3://` address.'),
  })
  .describe(
    'Every object under an S3 prefix; or a folder at an HTTP(S) address: that of a playlist or MPD (what it refers to in its folder is taken), of a folder that the server lists (nginx, Apache), or of any folder where `playlist_pattern` names a playlist without wildcards.',
  );

/** Every body accepts all four types, so that an operation can say which one it does not take, and where. */
const apiInputRef = z
  .discriminatedUnion('type', [localFilePath, localFolderPath, remoteFileUrl, remoteFolderUrl])
  .meta({
    id: 'ApiInputRef',
    description: 'Where an input comes from.',
    examples: [
      { type: 'local_file_path', path: '/media/interview.mp4' },
      { type: 'remote_file_url', url: 'https://cdn.example.com/interview.mp4', filename_hint: 'interview.mp4' },
    ],
  });
export type ApiInputRef = z.infer<typeof apiInputRef>;

/** The longest `prefix` and `name` of an output, in UTF-16 code units; the sinks bound their parts. */
const MAX_OUTPUT_FOLDER_LENGTH = 2048;

const outputFolder = z.string().max(MAX_OUTPUT_FOLDER_LENGTH).nullish();
const prefix = outputFolder.describe('A namespace under the root of the sink; `/` or nothing means none.');
const name = outputFolder.describe('A folder for the outputs of this request.');

export const apiOutputSpec = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('local'), prefix, name }).describe('The file system of the service host.'),
    z
      .strictObject({ type: z.literal('s3'), bucket: text.describe('An allowed bucket.'), prefix, name })
      .describe('An object-storage bucket; usable where the deployment has S3 support.'),
  ])
  .meta({
    id: 'ApiOutputSpec',
    description:
      'Where outputs are written: `<base>/<prefix>/<name>/<leaf>`. Nothing, or null, is the same as `{"type": "local"}`. Writing to the same place again replaces what is there.',
    examples: [{ type: 'local', prefix: 'newsroom', name: '2026-11-21' }],
  });
export type ApiOutputSpec = z.infer<typeof apiOutputSpec>;

/** The fields that every operation's request has beside its `output` and `params`. */
export const inputRequestFields = {
  inputs: z.array(apiInputRef).min(1).describe('One or more inputs; each is processed on its own.'),
  client_reference: clientReference.nullish(),
  labels: jobLabels.nullish(),
  callback_url: callbackUrl
    .nullish()
    .describe(
      'An `https://` or `http://` address that the Job result is posted to when the job has ended. Usable where the deployment sets `callbacks.secret`.',
    ),
};

/** The fields of a request whose inputs each become an output. */
export const commonRequestFields = { ...inputRequestFields, output: apiOutputSpec.nullish() };
