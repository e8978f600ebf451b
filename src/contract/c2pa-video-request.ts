import { z } from 'zod';
import { commonRequestFields } from './request.ts';
import { c2paParams } from './signing.ts';

export const c2paVideoRequest = z.strictObject({ ...commonRequestFields, params: c2paParams.optional() }).meta({
  id: 'C2paVideoRequest',
  description: 'Signs video files. Folders are refused.',
  examples: [
    {
      inputs: [{ type: 'local_file_path', path: '/media/interview.mp4' }],
      output: { type: 'local', prefix: 'newsroom' },
      params: { assertions: [{ label: 'com.example.review', data: { approved: true } }] },
    },
  ],
});
export type C2paVideoRequest = z.infer<typeof c2paVideoRequest>;
