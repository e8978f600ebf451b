import type { Signers } from '#provenance/signers.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';

/** A signer without a process, for jobs whose workers do not sign. */
export interface InertSigner {
  readonly signer: Signers;
  /** Puts an identity into force that ends at a time. */
  renew(notAfter: Date): void;
}

export function inertSigner(notAfter: Date, certificate = 'certificate'): InertSigner {
  const listeners: (() => void)[] = [];
  const signer = {
    identities: [describedIdentity(notAfter, certificate)],
    identityOf: (name: string) => signer.identities.find((each) => each.name === name) ?? null,
    away: new Map(),
    started: Promise.resolve(),
    processCount: 1,
    attach: () => ({ allow: () => true }),
    onRenewal: (listener: () => void) => void listeners.push(listener),
  };
  return {
    signer: signer as unknown as Signers,
    renew: (end) => {
      signer.identities = [describedIdentity(end, certificate)];
      for (const listener of listeners) listener();
    },
  };
}

/** An identity as a signer process describes it. */
export function describedIdentity(notAfter: Date, certificate: string): IdentityDescription {
  return {
    name: 'default',
    tsaUrls: [],
    publisher: null,
    process: 0,
    key: 0,
    keyKind: 'pem',
    kind: 'configured',
    subject: 'CN=Signer',
    file: `/${certificate}.pem`,
    algorithm: 'es256',
    certificateChain: [Buffer.from(certificate).toString('base64')],
    signatureSizeBytes: 64,
    notAfter: notAfter.toISOString(),
    exposedKey: null,
    deviations: [],
  };
}
