import type { Config } from './config.ts';

/** The name of the identity that the keys of `signing` itself configure, and of the development identity. */
export const DEFAULT_IDENTITY = 'default';

/** Where a private key is, and how it is reached; `development` keys are made by the service itself. */
export type SignerSettings = Config['signing']['identities'][string]['signer'] | { readonly type: 'development' };

/** A private key with its certificates: of an identity, or of its publisher. */
export interface CredentialSettings {
  /** The PEM chain, the leaf first; of development identities the file of both. */
  readonly certificatePath: string;
  /** Undefined: the default of the key. */
  readonly algorithm?: Config['signing']['algorithm'];
  readonly signer: SignerSettings;
}

/** An identity of the configuration. */
export interface IdentitySettings extends CredentialSettings {
  readonly name: string;
  readonly tsaUrls: readonly string[];
  /** The key of its CAWG identity assertions; null where it makes none. */
  readonly publisher: CredentialSettings | null;
}

/** Returns the name of the identity that requests without `params.identity` sign with. */
export function defaultIdentityOf({ signing }: Pick<Config, 'signing'>): string {
  return signing.default_identity ?? Object.keys(signing.identities)[0] ?? DEFAULT_IDENTITY;
}
