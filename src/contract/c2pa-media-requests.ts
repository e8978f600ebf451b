import { z } from 'zod';
import { commonRequestFields } from './request.ts';
import { c2paParams } from './signing.ts';

export const c2paVideoRequest = z.strictObject({ ...commonRequestFields, params: c2paParams.optional() }).meta({
  id: 'C2paVideoRequest',
  description: 'Signs video files; with `params.manifest: "sidecar"` files of any kind. Folders are refused.',
  examples: [
    {
      inputs: [{ type: 'local_file_path', path: '/media/interview.mp4' }],
      output: { type: 'local', prefix: 'newsroom' },
      params: { assertions: [{ label: 'com.example.review', data: { approved: true } }] },
    },
    {
      inputs: [{ type: 'local_file_path', path: '/media/master.mxf' }],
      params: { manifest: 'sidecar', copy_source: false },
    },
  ],
});
export type C2paVideoRequest = z.infer<typeof c2paVideoRequest>;

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
export type C2paAudioRequest = z.infer<typeof c2paAudioRequest>;
