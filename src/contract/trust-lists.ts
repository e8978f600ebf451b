import { z } from 'zod';

const namedList = z.object({
  name: z.string().describe('The name of its file, without the extension.'),
  pem: z.string().describe('Its certificates.'),
});

export const trustLists = z
  .object({
    signers: z.array(namedList).describe('Anchors of signers (`trust.anchors`).'),
    authorities: z.array(namedList).describe('Anchors of time-stamp authorities (`trust.tsa_anchors`).'),
  })
  .meta({
    id: 'TrustLists',
    description: 'The trust lists that verification uses, for readers that run elsewhere.',
    examples: [{ signers: [{ name: 'C2PA-TRUST-LIST', pem: '-----BEGIN CERTIFICATE-----…' }], authorities: [] }],
  });
export type ShownTrustLists = z.infer<typeof trustLists>;
