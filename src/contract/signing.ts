import { z } from 'zod';
import { apiActions, digitalSourceType } from './actions.ts';
import { identityName, localFilePath, remoteFileUrl, text } from './request.ts';

/** Assertions of one request. Real ones have a few; readers need seconds for the manifests of 2,000. */
export const MAX_ASSERTIONS = 2_000;

export const apiAssertionDef = z
  .strictObject({
    label: text.describe(
      'A label of your own domain in reverse, such as `com.example.review`. Of the standard labels a request may state `c2pa.asset-ref`, `c2pa.metadata`, `c2pa.soft-binding`, `c2pa.training-mining`, `cawg.metadata` and `cawg.training-mining`.',
    ),
    data: z.unknown().describe('Any JSON value.'),
  })
  .meta({
    id: 'ApiAssertionDef',
    description: 'An assertion of the caller, embedded in the signed manifest as it is.',
    examples: [{ label: 'com.example.review', data: { reviewer: 'desk-4', approved: true } }],
  });
export type ApiAssertionDef = z.infer<typeof apiAssertionDef>;

export const apiParentFileSource = z.discriminatedUnion('type', [localFilePath, remoteFileUrl]).meta({
  id: 'ApiParentFileSource',
  description: 'The file of a parent; folders have no single manifest.',
  examples: [{ type: 'local_file_path', path: '/media/original.mp4' }],
});
export type ApiParentFileSource = z.infer<typeof apiParentFileSource>;

export const apiParent = z
  .discriminatedUnion('type', [
    z
      .strictObject({ type: z.literal('reference'), reference: text.describe('An opaque token; nothing is fetched.') })
      .describe('A bare ingredient that carries a token.'),
    z
      .strictObject({ type: z.literal('file'), source: apiParentFileSource })
      .describe('A media file whose manifest joins the provenance chain.'),
  ])
  .meta({
    id: 'ApiParent',
    description: 'What the output was made from. Without one, the output counts as an edit of its own source.',
    examples: [{ type: 'file', source: { type: 'local_file_path', path: '/media/original.mp4' } }],
  });
export type ApiParent = z.infer<typeof apiParent>;

export const apiParentOverride = z
  .strictObject({
    input_index: z.int().min(0).describe('The input that this is for, counted from zero.'),
    parent: apiParent.nullish().describe('Replaces the parent for that input; null or nothing disables it.'),
  })
  .meta({
    id: 'ApiParentOverride',
    description: 'Another parent for one input, or none.',
    examples: [{ input_index: 1, parent: null }],
  });
export type ApiParentOverride = z.infer<typeof apiParentOverride>;

/** The fields of `params` that all signing operations share. */
export const signingParamsFields = {
  identity: identityName
    .optional()
    .describe(
      'The identity that signs, as the configuration names it; the default of the caller where it is left out. `GET /v2/session` lists those that the caller may use.',
    ),
  assertions: z
    .array(apiAssertionDef)
    .max(MAX_ASSERTIONS)
    .optional()
    .describe(
      'Embedded in the signed manifest. Their data may have 8 MiB of JSON and 100,000 values in all, nested 100 levels deep. They are checked at submission, in at most 15 s and 1 GiB of memory.',
    ),
  digital_source_type: digitalSourceType
    .nullish()
    .describe(
      'States that the inputs were made anew, and how: the first action is `c2pa.created`. A term of IPTC or C2PA, or its address. It contradicts a parent (400) and a source that carries a manifest (that input fails). Nothing means the configured default, null means none; without one the first action is `c2pa.opened`.',
    ),
  actions: apiActions
    .optional()
    .describe(
      'What was done to the media before it was given to this service. Nothing means the configured default, an empty list means none.',
    ),
  all_actions_included: z
    .boolean()
    .optional()
    .describe(
      'States whether nothing else was done to the media since it was created, or since its parent. Without it, the manifest says so only where the source itself is the parent and no `actions` are stated.',
    ),
  parent: apiParent.nullish().describe('The parent of every input that has no override.'),
  parent_overrides: z.array(apiParentOverride).optional().describe('Parents for single inputs, each at most once.'),
};

/** The fields of `params` that say where the manifest of a file goes. */
const manifestPlaceFields = {
  manifest: z
    .enum(['embedded', 'sidecar'])
    .optional()
    .describe(
      'Where the manifest goes: into the file (`embedded`, the default), or into a file of its own, `<stem>.c2pa` (`sidecar`), next to an unchanged copy of the file. With `sidecar` any file can be signed that carries no manifest yet, of whatever container and size.',
    ),
  copy_source: z
    .boolean()
    .optional()
    .describe(
      'Only with `sidecar`: false delivers the sidecar alone, named after the source, to be put next to it. True by default.',
    ),
};

export const c2paParams = z.strictObject({ ...signingParamsFields, ...manifestPlaceFields }).meta({
  id: 'C2paParams',
  description: 'What goes into the signed manifests.',
  examples: [
    {
      assertions: [{ label: 'com.example.review', data: { approved: true } }],
      actions: [{ action: 'c2pa.trimmed', digital_source_type: 'humanEdits' }],
      parent: { type: 'reference', reference: 'asset-4711' },
      parent_overrides: [{ input_index: 0, parent: null }],
    },
    { digital_source_type: 'digitalCapture', all_actions_included: true },
    { manifest: 'sidecar', identity: 'newsroom' },
    { manifest: 'sidecar', copy_source: false },
  ],
});
export type C2paParams = z.infer<typeof c2paParams>;
