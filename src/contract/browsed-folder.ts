import { z } from 'zod';

export const browsedFolder = z
  .object({
    path: z.string().nullable().describe('The folder; null for the list of roots.'),
    parent: z.string().nullable().describe('The folder above it; null for a root.'),
    entries: z
      .array(
        z.object({
          name: z.string(),
          path: z.string().describe('As the `path` of an input.'),
          kind: z.enum(['file', 'folder']),
          size_bytes: z.int().min(0).exactOptional().describe('Of a file.'),
        }),
      )
      .describe('In the order of their names. A page may have fewer than were asked for, and more may follow.'),
    next_cursor: z.string().nullable().describe('Give it as `cursor` for the next page; null on the last one.'),
  })
  .meta({
    id: 'BrowsedFolder',
    description: 'A page of a folder that inputs are read from.',
    examples: [
      {
        path: '/media/ingest',
        parent: '/media',
        entries: [
          { name: '2026-11-23', path: '/media/ingest/2026-11-23', kind: 'folder' },
          { name: 'interview.mp4', path: '/media/ingest/interview.mp4', kind: 'file', size_bytes: 1200000000 },
        ],
        next_cursor: null,
      },
    ],
  });
export type BrowsedFolder = z.infer<typeof browsedFolder>;
