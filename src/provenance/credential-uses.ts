import { X509Certificate } from 'node:crypto';
import type { CredentialSettings, IdentitySettings } from '#config/identities.ts';
import { AppError } from '#errors/app-error.ts';
import type { CredentialUse } from './check-identity.ts';
import type { Credential } from './credential.ts';
import type { CredentialDescription } from './signing-identity.ts';

// The identities of a configuration have a credential for claims, and one of their publisher; they may share them.

/** Returns the settings of the credentials of an identity: that of claims, and that of its publisher. */
export function partsOf({ publisher, ...claim }: IdentitySettings): readonly CredentialSettings[] {
  return publisher === null ? [claim] : [claim, publisher];
}

/** Returns a text that is the same for equal settings. */
export function idOf({ certificatePath, algorithm, signer }: CredentialSettings): string {
  return JSON.stringify([certificatePath, algorithm, signer]);
}

/** Tells whether a key has a signer process of its own. */
export function isDevice({ signer: { type } }: CredentialSettings): boolean {
  return type !== 'pem' && type !== 'development';
}

/** Returns what identities use a credential for. */
export function useOf({ settings: own }: Credential, settings: readonly IdentitySettings[]): CredentialUse {
  const id = idOf(own);
  const claims = settings.filter((identity) => idOf(identity) === id);
  const users =
    claims.length > 0 ? claims : settings.filter(({ publisher }) => publisher !== null && idOf(publisher) === id);
  return { identity: users.map(({ name }) => name).join(', '), role: claims.length > 0 ? 'claim' : 'publisher' };
}

/** Throws `IDENTITY_INVALID` where a publisher has the key that claims of an identity are signed with. */
export function requireOwnKeys(
  settings: readonly IdentitySettings[],
  credentials: ReadonlyMap<string, CredentialDescription | null>,
): void {
  const keyOf = (part: CredentialSettings): string | null => {
    const [leaf] = credentials.get(idOf(part))?.certificateChain ?? [];
    if (leaf === undefined) return null;
    const { publicKey } = new X509Certificate(Buffer.from(leaf, 'base64'));
    return publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
  };
  const claims = new Map(settings.map((identity) => [keyOf(identity), identity.name]));
  for (const { name, publisher } of settings) {
    const key = publisher && keyOf(publisher);
    const claim = key === null ? undefined : claims.get(key);
    if (publisher === null || claim === undefined) continue;
    const problem = `the publisher of the identity "${name}" has the key that claims of "${claim}" are signed with. Give it a key of its own`;
    throw new AppError('IDENTITY_INVALID', { file: publisher.certificatePath, problems: [problem] });
  }
}
