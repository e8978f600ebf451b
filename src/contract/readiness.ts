import { z } from 'zod';

export const readiness = z
  .object({
    ready: z
      .boolean()
      .describe(
        'Whether the node can take jobs, or do them, as its role is: its store can be written, its queue is not full.',
      ),
    version: z.string().describe('The release of the service.'),
    role: z.enum(['all', 'api', 'worker']).describe('What this node does.'),
    identity: z
      .object({
        kind: z
          .enum(['development', 'configured'])
          .describe('`development`: made by the service itself, so nobody has a reason to trust it.'),
        not_after: z.iso.datetime().describe('When its certificate expires.'),
      })
      .exactOptional()
      .describe('The signing identity; absent where the node signs nothing.'),
    store: z.object({
      engine: z.enum(['sqlite', 'postgresql']),
      reachable: z.boolean().describe('Whether it can be written.'),
    }),
    queue: z.object({
      waiting: z.int().min(0).describe('Inputs that wait here.'),
      capacity: z.int().min(1).describe('Inputs that may wait (`worker.queue_capacity`).'),
    }),
    workers: z.object({
      running: z.int().min(0).describe('Inputs that run on this node.'),
      limit: z.int().min(0).describe('Inputs that may run on this node at once.'),
      processes: z.int().min(0).describe('Worker processes of this node.'),
    }),
  })
  .meta({
    id: 'Readiness',
    description: 'How a node is.',
    examples: [
      {
        ready: true,
        version: '0.1.0',
        role: 'all',
        identity: { kind: 'configured', not_after: '2026-12-31T23:59:59.000Z' },
        store: { engine: 'sqlite', reachable: true },
        queue: { waiting: 12, capacity: 100000 },
        workers: { running: 4, limit: 4, processes: 4 },
      },
    ],
  });
export type Readiness = z.infer<typeof readiness>;
