import type { Config } from '#config/config.ts';
import { DEFAULT_IDENTITY, defaultIdentityOf, identitiesOf } from '#config/identities.ts';
import type { ShownIdentity } from '#contract/service.ts';
import { signs } from '#contract/signing-operations.ts';
import { AppError } from '#errors/app-error.ts';
import { algorithmName } from '#provenance/algorithm-name.ts';
import type { Signers } from '#provenance/signers.ts';
import type { CredentialDescription, IdentityDescription } from '#provenance/signing-identity.ts';
import { idOf, SIGNER } from './dependencies.ts';
import type { Submission } from './job.ts';

type IdentityConfig = Pick<Config, 'auth' | 'signing'>;

/** Returns the names of the identities that a caller may sign with, its default first; `caller` is null where no tokens are set. */
export function usableIdentities(caller: string | null, { auth, signing }: IdentityConfig): readonly string[] {
  const own = caller !== null && Object.hasOwn(auth.callers, caller) ? auth.callers[caller]?.identities : undefined;
  return own ?? [...new Set([defaultIdentityOf({ signing }), ...Object.keys(signing.identities)])];
}

/**
 * Returns the name of the identity that the inputs of a submission sign with; null where they sign nothing. Throws
 * `IDENTITY_UNKNOWN` or `IDENTITY_FORBIDDEN`.
 */
export function settledIdentity(submission: Submission, config: IdentityConfig): string | null {
  const { operation, request, caller = null, identity: kept } = submission;
  if (!signs(operation)) return null;
  const { identity: given } = (request.params ?? {}) as { readonly identity?: string };
  const identities = usableIdentities(caller, config);
  const asked = kept ?? given ?? identities[0] ?? DEFAULT_IDENTITY;
  if (identities.includes(asked)) return asked;
  const isKnown = asked === defaultIdentityOf(config) || Object.hasOwn(config.signing.identities, asked);
  const reason = isKnown ? 'IDENTITY_FORBIDDEN' : 'IDENTITY_UNKNOWN';
  throw new AppError(reason, { identity: asked, identities }, { field: 'params.identity' });
}

/** The identities of a node that signs, as they are now. */
export type NodeIdentities = Pick<Signers, 'identities' | 'identityOf' | 'away'>;

/** Those of a node that signs nothing. */
export const NO_IDENTITIES: NodeIdentities = { identities: [], identityOf: () => null, away: new Map() };

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
  const shown = identities.filter(({ name }) => !away.has(name)).map(shownIdentity);
  const absent = identitiesOf(config).flatMap(({ name, signer }) => {
    const error = away.get(name);
    if (error === undefined) return [];
    return [{ name, key_kind: signer.type, away: { reason: error.reason, message: error.message } }];
  });
  return [...shown, ...absent].sort((one, other) => (one.name < other.name ? -1 : 1));
}

/** Returns an identity that can be used as admins see it. */
export function shownIdentity(identity: IdentityDescription): ShownIdentity {
  const { name, kind, publisher } = identity;
  return { name, kind, ...shownCredential(identity), ...(publisher && { publisher: shownCredential(publisher) }) };
}

function shownCredential({ keyKind, subject, algorithm, notAfter }: CredentialDescription) {
  return { key_kind: keyKind, subject, algorithm: algorithmName(algorithm), not_after: notAfter };
}

/** Returns the error of inputs whose identity this node cannot use; null where it can. */
export function problemOfIdentity(identity: string, own: NodeIdentities): AppError | null {
  if (own.identityOf(identity) !== null) return null;
  const error = own.away.get(identity);
  if (error === undefined) return new AppError('IDENTITY_ABSENT', { identity });
  return new AppError('IDENTITY_AWAY', { identity, problem: error.message.replace(/\.$/, '') });
}
