import { z } from 'zod';
import { apiOutputSpec, glob, inputRequestFields, text } from './request.ts';
import { apiParentFileSource } from './signing.ts';

/** Rubrics of one request. */
const MAX_RUBRICS = 20;
/** Globs of entries of one request. */
const MAX_ENTRY_GLOBS = 100;

export const verifyParams = z
  .strictObject({
    report: z
      .enum(['summary', 'detailed', 'crjson'])
      .optional()
      .describe(
        'How much the answer tells: `summary` (the default) is short; `detailed` has the data of assertions and longer lists; `crjson` adds the crJSON of the official reader.',
      ),
    depth: z
      .enum(['sample', 'full'])
      .optional()
      .describe(
        'Fragments of publications that the official reader reads: up to 16 of each rendition (`sample`, the default), or all. All are hashed and compared with the manifest in either case.',
      ),
    presentation: z
      .enum(['as_signed', 'equivalent'])
      .optional()
      .describe(
        'Whether playlists may differ from the signed ones, as origins rewrite them: `as_signed` (the default) calls a publication `invalid` whose playlists do; `equivalent` judges by the media that they name alone.',
      ),
    entries: z
      .array(glob)
      .min(1)
      .max(MAX_ENTRY_GLOBS)
      .optional()
      .describe(
        'Globs of the playlists of a publication that players are given the address of. The verdict is limited to these and what they name; without them, every playlist counts that no other one names.',
      ),
    rubrics: z
      .union([z.literal(true), z.array(text).min(1).max(MAX_RUBRICS)])
      .optional()
      .describe(
        'Rubrics (C2PA asset rubrics, YAML) that are evaluated: names of files in `trust.rubrics_dir`, with or without extension; `true` for all of them.',
      ),
    sidecars: z
      .array(
        z.strictObject({
          input_index: z.int().min(0).describe('The input that it belongs to, counted from zero.'),
          source: apiParentFileSource.describe('The sidecar: a manifest store in a file of its own.'),
        }),
      )
      .optional()
      .describe(
        'Manifests that lie elsewhere than in their files. Without one here, a file that carries no manifest is verified with `<stem>.c2pa` next to it, where there is one.',
      ),
  })
  .meta({
    id: 'VerifyParams',
    description: 'How inputs are verified. Nothing is required.',
    examples: [{ report: 'detailed' }],
  });
export type VerifyParams = z.infer<typeof verifyParams>;

export const verifyRequest = z
  .strictObject({
    ...inputRequestFields,
    output: apiOutputSpec
      .nullish()
      .describe(
        'Where the full report of each input is written, as `<stem>_verification.json`. Without it, the answer is all there is.',
      ),
    params: verifyParams.optional(),
  })
  .meta({
    id: 'VerifyRequest',
    description: 'Verifies files and publications. An input that could be judged is `succeeded`, whatever the verdict.',
    examples: [
      { inputs: [{ type: 'local_file_path', path: '/media/signed/interview_c2pa.mp4' }] },
      {
        inputs: [{ type: 'remote_folder_url', url: 'https://cdn.example.com/evening-news/master.m3u8' }],
        output: { type: 'local', prefix: 'reports' },
        params: { depth: 'full' },
      },
    ],
  });
export type VerifyRequest = z.infer<typeof verifyRequest>;
