import { z } from 'zod';

/** The version of the interface, as the contract states it; not the release of the program. */
export const INTERFACE_VERSION = '0.1.11';

const awayDependency = z
  .object({
    dependency: z
      .string()
      .describe('Its kind and, with the token of an admin, behind a colon its name, such as `output_bucket:media`.'),
    state: z
      .enum(['away', 'returning'])
      .describe('`returning`: it works again as a probe saw it, and few inputs at a time use it.'),
    since: z.iso.datetime().describe('When the first input met it.'),
    reason: z.string().describe('A stable name of what that input met.'),
    message: z.string().describe('The same for people, with the remedy for admins.'),
  })
  .meta({ id: 'AwayDependency', description: 'A part of the deployment that is away.' });

const keyKind = z.enum(['pem', 'pkcs11', 'http', 'vault', 'aws_kms', 'development']);

const credential = {
  key_kind: keyKind.describe('Where its private key is: `signer.type`.'),
  subject: z.string().exactOptional().describe('The subject of its certificate.'),
  algorithm: z.string().exactOptional().describe('As C2PA and COSE name it: `ES256`, `PS256`, `Ed25519`.'),
  not_after: z.string().exactOptional().describe('When its certificate expires.'),
};

const exampleIdentity = {
  name: 'news',
  kind: 'configured' as const,
  key_kind: 'pkcs11' as const,
  subject: 'CN=Example signer,O=Example Broadcasting',
  algorithm: 'ES256',
  not_after: '2027-11-21T10:00:00.000Z',
};

export const shownIdentity = z
  .object({
    name: z.string().describe('The name of its section in `signing.identities`; `default` where there is none.'),
    kind: z
      .enum(['configured', 'development'])
      .exactOptional()
      .describe('`development`: made by the service itself; nobody has a reason to trust it.'),
    ...credential,
    publisher: z
      .object(credential)
      .exactOptional()
      .describe('The credential of its CAWG identity assertions, where it makes some.'),
    away: z
      .object({
        reason: z.string().describe('A stable name of the cause.'),
        message: z.string().describe('The same for people, with the remedy.'),
      })
      .exactOptional()
      .describe('The cause where it cannot be used now; then nothing else is known of it.'),
  })
  .meta({
    id: 'ShownIdentity',
    description: 'A signing identity of a node.',
    examples: [exampleIdentity],
  });
export type ShownIdentity = z.infer<typeof shownIdentity>;

export const readiness = z
  .object({
    ready: z
      .boolean()
      .describe(
        'Whether the node can take jobs, or do them, as its role is: its store can be written, its queue is not full, and it can sign.',
      ),
    version: z.string().describe('The release of the service.'),
    interface_version: z.string().describe('The version of the interface, as `info.version` of the OpenAPI document.'),
    role: z.enum(['all', 'api', 'worker']).describe('What this node does.'),
    identity: z
      .object({
        kind: z
          .enum(['development', 'configured'])
          .describe('`development`: made by the service itself, so nobody has a reason to trust it.'),
        not_after: z.iso.datetime().describe('When its certificate expires.'),
      })
      .exactOptional()
      .describe('The first of its signing identities that can be used; absent where there is none.'),
    identities: z
      .array(shownIdentity)
      .readonly()
      .exactOptional()
      .describe('All of them, for admins; absent where the node signs nothing.'),
    store: z.object({
      engine: z.enum(['sqlite', 'postgresql']),
      reachable: z.boolean().describe('Whether it can be written.'),
    }),
    queue: z.object({
      waiting: z.int().min(0).describe('Inputs that wait here.'),
      capacity: z.int().min(1).describe('Inputs that may wait (`worker.queue_capacity`).'),
    }),
    dependencies: z
      .array(awayDependency)
      .describe(
        'The parts of the deployment that are away for this node, and that inputs wait for; empty where all work.',
      ),
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
        interface_version: INTERFACE_VERSION,
        role: 'all',
        identity: { kind: 'configured', not_after: '2026-12-31T23:59:59.000Z' },
        store: { engine: 'sqlite', reachable: true },
        queue: { waiting: 12, capacity: 100000 },
        dependencies: [],
        workers: { running: 4, limit: 4, processes: 4 },
      },
    ],
  });
export type Readiness = z.infer<typeof readiness>;
export type AwayDependency = z.infer<typeof awayDependency>;

export const configuration = z
  .object({
    settings: z
      .record(z.string(), z.unknown())
      .describe('Values in force, by key; user parts and queries of addresses are left out.'),
    withheld: z.array(z.string()).describe('Keys that are set, and whose values are secret.'),
    identity: shownIdentity
      .exactOptional()
      .describe('The identity that requests sign with which name none; absent where the node cannot use it.'),
    identities: z
      .array(shownIdentity)
      .readonly()
      .exactOptional()
      .describe('All that this node signs with; nodes that only take jobs have none.'),
  })
  .meta({
    id: 'Configuration',
    description: 'The configuration of a node.',
    examples: [
      {
        settings: { 'server.bind_addr': '0.0.0.0:8080' },
        withheld: ['auth.tokens'],
        identity: { ...exampleIdentity, name: 'default', key_kind: 'pem' as const },
      },
    ],
  });
export type ShownConfig = z.infer<typeof configuration>;

export const reloadResponse = z
  .object({
    identities: z
      .array(shownIdentity)
      .readonly()
      .exactOptional()
      .describe('The identities in force; absent where the node signs nothing.'),
    tokens: z.int().min(0).describe('The number of tokens in force.'),
    callers: z.array(z.string()).readonly().describe('The callers whose identities are restricted.'),
    trust_lists: z.array(z.string()).readonly().describe('The names of the trust lists in force.'),
    needs_restart: z
      .array(z.string())
      .readonly()
      .describe('Other keys of the configuration that were changed since the start: they take effect with a restart.'),
  })
  .meta({
    id: 'ReloadResponse',
    description: 'The reloaded configuration, as far as it is in force.',
    examples: [
      {
        identities: [{ ...exampleIdentity, key_kind: 'pem' as const }],
        tokens: 3,
        callers: ['newsroom'],
        trust_lists: ['C2PA-TRUST-LIST'],
        needs_restart: ['worker.queue_capacity'],
      },
    ],
  });
export type ReloadResponse = z.infer<typeof reloadResponse>;

const namedList = z.object({
  name: z.string().describe('The name of its file, without the extension.'),
  pem: z.string().describe('Its certificates.'),
});

export const trustLists = z
  .object({
    signers: z.array(namedList).describe('Anchors of signers (`trust.anchors`).'),
    authorities: z.array(namedList).describe('Anchors of time-stamp authorities (`trust.tsa_anchors`).'),
    publishers: z.array(namedList).describe('Anchors of publishers (`trust.publisher_anchors`).'),
    allowed: z
      .array(namedList)
      .describe(
        'Certificates of publishers themselves (`trust.allowed`); of some only the SHA-256 in base64, on a line of its own.',
      ),
  })
  .meta({
    id: 'TrustLists',
    description: 'The trust lists that verification uses, for readers that run elsewhere.',
    examples: [
      {
        signers: [{ name: 'C2PA-TRUST-LIST', pem: '-----BEGIN CERTIFICATE-----…' }],
        authorities: [],
        publishers: [],
        allowed: [],
      },
    ],
  });
export type ShownTrustLists = z.infer<typeof trustLists>;
