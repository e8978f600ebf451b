import { z } from 'zod';
import { packagingParamsFields } from './package-request.ts';
import { commonRequestFields, glob } from './request.ts';
import { c2paParams, signingParamsFields } from './signing.ts';

export const c2paVideoRequest = z.strictObject({ ...commonRequestFields, params: c2paParams.optional() }).meta({
  id: 'C2paVideoRequest',
  description: 'Signs video files; with `params.manifest: "sidecar"` files of any kind. Folders are refused.',
  examples: [
    {
      inputs: [{ type: 'local_file_path', path: '/media/interview.mp4' }],
      output: { type: 'local', prefix: 'newsroom' },
      params: { assertions: [{ label: 'com.example.review', data: { approved: true } }] },
      client_reference: 'order-4711',
      labels: { project: 'evening-news' },
    },
    {
      inputs: [{ type: 'local_file_path', path: '/media/master.mxf' }],
      params: { manifest: 'sidecar', copy_source: false },
    },
  ],
});

export const c2paAudioRequest = z.strictObject({ ...commonRequestFields, params: c2paParams.optional() }).meta({
  id: 'C2paAudioRequest',
  description:
    'Signs audio files: mp3, wav, flac, m4a, and mp4 or m4v without a video track; with `params.manifest: "sidecar"` files of any kind. Folders are refused.',
  examples: [
    {
      inputs: [{ type: 'local_file_path', path: '/media/podcast.mp3' }],
      params: { parent: { type: 'reference', reference: 'episode-12' } },
    },
  ],
});

/** A glob of the request. `what` is what it finds, as a noun. */
const pathPattern = (what: string, example: string) =>
  glob.describe(
    `A glob on paths relative to the input folder that finds the ${what}, such as \`${example}\`. Without a slash it matches in every subfolder.`,
  );

const c2paFragmentedParams = z
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

const c2paPackageParams = z
  .strictObject({
    playlist_pattern: pathPattern('playlists and MPDs of a folder that is a publication already', '*.m3u8').nullish(),
    init_pattern: pathPattern('init segments that are signed', 'init*.mp4').nullish(),
    frag_pattern: pathPattern('fragments that are signed', '*.m4s').nullish(),
    ...packagingParamsFields,
    ...signingParamsFields,
  })
  .meta({
    id: 'C2paPackageParams',
    description:
      'How the publication is made, and what goes into its manifest. Where a folder is a publication already, the patterns choose what of it is packaged and signed; what they leave open is found out. Of raw media they choose nothing, which is told in a warning; one that nothing in the folder matches fails the input.',
    examples: [
      {
        segment_duration: 6,
        default_language: 'en',
        assertions: [{ label: 'com.example.review', data: { approved: true } }],
      },
    ],
  });
export type C2paPackageParams = z.infer<typeof c2paPackageParams>;

export const c2paPackageRequest = z.strictObject({ ...commonRequestFields, params: c2paPackageParams }).meta({
  id: 'C2paPackageRequest',
  description:
    'Packages folders of media, each into one publication (HLS and DASH over the same CMAF segments), and signs it. A folder that is such a publication already is signed as it is. Files are refused.',
  examples: [
    {
      inputs: [{ type: 'local_folder_path', path: '/media/films/evening-news' }],
      output: { type: 'local', prefix: 'newsroom' },
      params: { segment_duration: 6, default_language: 'en' },
    },
  ],
});
