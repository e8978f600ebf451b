import { z } from 'zod';
import { commonRequestFields } from './request.ts';
import { signingParamsFields } from './signing.ts';
import { text } from './text.ts';

/** A glob of the request. `what` is what it finds, as a noun. */
export const pathPattern = (what: string, example: string) =>
  text.describe(
    `A glob on paths relative to the input folder that finds the ${what}, such as \`${example}\`. Without a slash it matches in every subfolder.`,
  );

export const c2paFragmentedParams = z
  .strictObject({
    playlist_pattern: pathPattern('playlists and MPDs', '*.{m3u8,mpd}'),
    init_pattern: pathPattern('init segments', 'init*.mp4'),
    frag_pattern: pathPattern('fragments', '*.m4s'),
    ...signingParamsFields,
  })
  .meta({
    id: 'C2paFragmentedParams',
    description: 'What of a folder is the publication, and what goes into its manifest.',
    examples: [{ playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init*.mp4', frag_pattern: '*.m4s' }],
  });
export type C2paFragmentedParams = z.infer<typeof c2paFragmentedParams>;

export const c2paFragmentedRequest = z.strictObject({ ...commonRequestFields, params: c2paFragmentedParams }).meta({
  id: 'C2paFragmentedRequest',
  description: 'Signs fragmented (HLS, DASH) publications, each a folder. Files are refused.',
  examples: [
    {
      inputs: [{ type: 'local_folder_path', path: '/media/publications/evening-news' }],
      output: { type: 'local', prefix: 'newsroom' },
      params: { playlist_pattern: '*.{m3u8,mpd}', init_pattern: 'init*.mp4', frag_pattern: '*.m4s' },
    },
  ],
});
export type C2paFragmentedRequest = z.infer<typeof c2paFragmentedRequest>;
