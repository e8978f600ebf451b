import { z } from 'zod';

export const jobRequestResponse = z
  .object({
    method: z.literal('POST'),
    path: z.string().describe('The asynchronous route of the operation.'),
    body: z
      .looseObject({})
      .describe('What was submitted. Queries of addresses and `callback_url` are left out: they may grant access.'),
  })
  .meta({
    id: 'JobRequestResponse',
    description: 'The request that a job was made from.',
    examples: [
      {
        method: 'POST',
        path: '/v2/c2pa/video',
        body: { inputs: [{ type: 'local_file_path', path: '/media/interview.mp4' }], params: { parent: null } },
      },
    ],
  });
export type JobRequestResponse = z.infer<typeof jobRequestResponse>;
