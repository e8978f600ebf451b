import { join } from 'node:path';
import type { Config } from './config.ts';

/** The name of the identity that the keys of `signing` itself configure, and of the development identity. */
export const DEFAULT_IDENTITY = 'default';

/** The place of a private key, and the way to reach it; `development` keys are made by the service itself. */
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

/** Returns the identities, by the order of the configuration: those of `signing.identities`, else the one of `signing` itself. */
export function identitiesOf({ signing, jobs }: Pick<Config, 'signing' | 'jobs'>): readonly IdentitySettings[] {
  const configured = Object.entries(signing.identities).map(
    ([name, { publisher, tsa_url: tsaUrls, ...credential }]) => ({
      name,
      ...credentialOf(credential),
      tsaUrls: tsaUrls ?? signing.tsa_url,
      publisher: publisher === undefined ? null : credentialOf(publisher),
    }),
  );
  if (configured.length > 0) return configured;
  return [{ name: DEFAULT_IDENTITY, ...ownCredential(signing, jobs), tsaUrls: signing.tsa_url, publisher: null }];
}

/** Tells whether outputs are signed with a development identity, because none is configured. */
export function signsForDevelopment(config: Pick<Config, 'signing' | 'jobs'>): boolean {
  return identitiesOf(config).some(({ signer }) => signer.type === 'development');
}

function credentialOf({
  certificate_path: certificatePath,
  ...rest
}: Pick<Config['signing']['identities'][string], 'certificate_path' | 'algorithm' | 'signer'>): CredentialSettings {
  return { certificatePath, ...rest };
}

/** Returns the credential that the keys of `signing` itself configure, or the development identity. */
function ownCredential(signing: Config['signing'], jobs: Config['jobs']): CredentialSettings {
  const { certificate_path: certificatePath, private_key_path: path, private_key_passphrase: passphrase } = signing;
  if (certificatePath === undefined || path === undefined) {
    return { certificatePath: developmentIdentityFile(jobs.data_dir), signer: { type: 'development' } };
  }
  return {
    certificatePath,
    ...(signing.algorithm !== undefined && { algorithm: signing.algorithm }),
    signer: {
      type: 'pem',
      private_key_path: path,
      ...(passphrase !== undefined && { private_key_passphrase: passphrase }),
    },
  };
}

/** Returns the file of the development identity. It holds leaf, authority and both keys, so that they always belong together. */
export function developmentIdentityFile(dataDir: string): string {
  return join(dataDir, 'identity', 'development-identity.pem');
}

const PUBLIC_FILES: ReadonlySet<string> = new Set(['ca_path', 'client_certificate_path', 'socket_path']);

/** Returns the files with which somebody could sign: of the private key, or of what a device asks for. */
export function secretFilesOf({ certificatePath, signer }: CredentialSettings): readonly string[] {
  if (signer.type === 'development') return [certificatePath];
  return pathsIn(signer, (key) => key.endsWith('_path') && !PUBLIC_FILES.has(key));
}

/** Returns the files that a credential is loaded from: certificates, keys, PINs, tokens. */
export function filesOf({ certificatePath, signer }: CredentialSettings): readonly string[] {
  return [certificatePath, ...pathsIn(signer, (key) => key.endsWith('_path') && key !== 'socket_path')];
}

/** Returns all paths of this host that identities use: their files, the libraries of vendors, and sockets. */
export function identityPaths(config: Pick<Config, 'signing' | 'jobs'>): readonly string[] {
  const credentials = identitiesOf(config).flatMap(({ publisher, ...claim }) =>
    publisher ? [claim, publisher] : [claim],
  );
  const others = (key: string) => key === 'module' || key === 'socket_path';
  return [...new Set(credentials.flatMap((each) => [...filesOf(each), ...pathsIn(each.signer, others)]))];
}

function pathsIn(signer: SignerSettings, isPath: (key: string) => boolean): readonly string[] {
  return Object.entries(signer).flatMap(([key, value]) => (isPath(key) ? [value] : []));
}

/** Returns the folder in which signers keep their state, such as of PINs that were wrong. */
export function signerStateDir({ jobs }: Pick<Config, 'jobs'>): string {
  return join(jobs.data_dir, 'signers');
}
