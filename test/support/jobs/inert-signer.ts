import type { SignerSupervisor } from '#provenance/signer-supervisor.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';

/** A signer without a process, for jobs whose workers do not sign. */
export interface InertSigner {
  readonly signer: SignerSupervisor;
  /** Puts an identity into force that ends at a time. */
  renew(notAfter: Date): void;
}

export function inertSigner(notAfter: Date, certificate = 'certificate'): InertSigner {
  const listeners: (() => void)[] = [];
  const signer = {
    identity: describedIdentity(notAfter, certificate),
    attach: () => ({ allow: () => undefined }),
    onRenewal: (listener: () => void) => void listeners.push(listener),
  };
  return {
    signer: signer as unknown as SignerSupervisor,
    renew: (end) => {
      signer.identity = describedIdentity(end, certificate);
      for (const listener of listeners) listener();
    },
  };
}

/** An identity as a signer process describes it. */
function describedIdentity(notAfter: Date, certificate: string): IdentityDescription {
  return {
    name: 'default',
    key: 0,
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
