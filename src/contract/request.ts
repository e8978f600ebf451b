import { z } from 'zod';
import { clientReference, jobLabels } from './job-labels.ts';
import { callbackUrl, path, sourceUrl, text } from './text.ts';

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
export const apiInputRef = z
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

/** The body of a retry, which may be left out. */
export const retryRequest = z
  .strictObject({ callback_url: inputRequestFields.callback_url })
  .default({})
  .meta({
    id: 'RetryRequest',
    description: 'What a retry does not take from its job. The body may be left out.',
    examples: [{}, { callback_url: 'https://example.com/signed' }],
  });
export type RetryRequest = z.infer<typeof retryRequest>;
