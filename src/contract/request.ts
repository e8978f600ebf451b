import { z } from 'zod';
// Placeholder for the full contract: see http-api.md. Owned by the contract room.
export const apiInputRef = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('local_file_path'), path: z.string() }),
  z.strictObject({ type: z.literal('local_folder_path'), path: z.string() }),
  z.strictObject({ type: z.literal('remote_file_url'), url: z.string(), filename_hint: z.string().nullish() }),
  z.strictObject({ type: z.literal('remote_folder_url'), url: z.string() }),
]);
export type ApiInputRef = z.infer<typeof apiInputRef>;
export const apiOutputSpec = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('local'), prefix: z.string().nullish(), name: z.string().nullish() }),
  z.strictObject({ type: z.literal('s3'), bucket: z.string(), prefix: z.string().nullish(), name: z.string().nullish() }),
]);
export type ApiOutputSpec = z.infer<typeof apiOutputSpec>;
