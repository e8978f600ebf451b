import { z } from 'zod';

export const configuration = z
  .object({
    settings: z
      .record(z.string(), z.unknown())
      .describe('Values in force, by key; user parts and queries of addresses are left out.'),
    withheld: z.array(z.string()).describe('Keys that are set, and whose values are secret.'),
  })
  .meta({
    id: 'Configuration',
    description: 'The configuration of a node.',
    examples: [{ settings: { 'server.bind_addr': '0.0.0.0:8080' }, withheld: ['auth.tokens'] }],
  });
export type ShownConfig = z.infer<typeof configuration>;
