import { z } from 'zod';

export const configuration = z
  .object({
    settings: z
      .record(z.string(), z.unknown())
      .describe('Values in force, by key; user parts and queries of addresses are left out.'),
    withheld: z.array(z.string()).describe('Keys that are set, and whose values are secret.'),
    identity: z
      .object({
        kind: z
          .enum(['configured', 'development'])
          .describe('`development`: made by the service itself; nobody has a reason to trust it.'),
        subject: z.string().describe('The subject of its certificate.'),
        algorithm: z.string().describe('As C2PA and COSE name it: `ES256`, `PS256`, `Ed25519`.'),
        not_after: z.string().describe('When its certificate expires.'),
      })
      .exactOptional()
      .describe('What this node signs with; nodes that only take jobs have none.'),
  })
  .meta({
    id: 'Configuration',
    description: 'The configuration of a node.',
    examples: [
      {
        settings: { 'server.bind_addr': '0.0.0.0:8080' },
        withheld: ['auth.tokens'],
        identity: {
          kind: 'configured',
          subject: 'CN=Example signer,O=Example Broadcasting',
          algorithm: 'ES256',
          not_after: '2027-11-21T10:00:00.000Z',
        },
      },
    ],
  });
export type ShownConfig = z.infer<typeof configuration>;
