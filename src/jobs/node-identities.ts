import type { Config } from '#config/config.ts';
import type { ShownIdentity } from '#contract/service.ts';
import { AppError } from '#errors/app-error.ts';
import { algorithmName } from '#provenance/algorithm-name.ts';
import type { SignerSupervisor } from '#provenance/signer-supervisor.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import { idOf, SIGNER } from './dependencies.ts';

/** The identities of a node that signs, as they are now. */
export interface NodeIdentities {
  /** Those that can be used. */
  readonly identities: readonly IdentityDescription[];
  identityOf(name: string): IdentityDescription | null;
  /** Configured ones that cannot be used now, with the cause. */
  readonly away: ReadonlyMap<string, AppError>;
}

/** Returns the identity of a signer that has one. */
export function identitiesOfSigner(signer: Pick<SignerSupervisor, 'identity'>): NodeIdentities {
  return {
    get identities() {
      return [signer.identity];
    },
    identityOf: (name) => (signer.identity.name === name ? signer.identity : null),
    away: new Map(),
  };
}

/**
 * Returns the dependencies that are signers which this node has, away or not: it leases nothing that needs another one. Inputs of
 * older releases need the default, which they do not name.
 */
export function signersOf({ identities, away }: NodeIdentities, defaultIdentity: string): readonly string[] {
  const names = [...identities.map(({ name }) => name), ...away.keys()];
  return [...names.map((name) => idOf({ kind: SIGNER, name })), ...(names.includes(defaultIdentity) ? [SIGNER] : [])];
}

/** Returns the identities of a node as admins see them, in the order of their names. */
export function shownIdentities({ identities, away }: NodeIdentities, config: Config): readonly ShownIdentity[] {
  const shown = identities.map((identity) => shownIdentity(identity, config));
  const absent = [...away].map(([name, { reason, message }]) => {
    return { name, ...keyKindIn(config, name), away: { reason, message } };
  });
  return [...shown, ...absent].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns an identity that can be used as admins see it. */
export function shownIdentity(identity: IdentityDescription, config: Config): ShownIdentity {
  const { name, kind, subject, algorithm, notAfter } = identity;
  const keyKind = kind === 'development' ? { key_kind: kind } : keyKindIn(config, name);
  return { name, kind, ...keyKind, subject, algorithm: algorithmName(algorithm), not_after: notAfter };
}

function keyKindIn({ signing }: Config, name: string): Pick<ShownIdentity, 'key_kind'> {
  return { key_kind: signing.identities[name]?.signer.type ?? 'pem' };
}

/** Returns the error of inputs whose identity this node cannot use; null where it can. */
export function problemOfIdentity(identity: string, own: NodeIdentities): AppError | null {
  if (own.identityOf(identity) !== null) return null;
  const error = own.away.get(identity);
  return error === undefined ? absentError(identity) : awayError(identity, error);
}

export function awayError(identity: string, { message }: AppError): AppError {
  return new AppError('IDENTITY_AWAY', { identity, problem: message.replace(/\.$/, '') });
}

export function absentError(identity: string): AppError {
  return new AppError('IDENTITY_ABSENT', { identity });
}
