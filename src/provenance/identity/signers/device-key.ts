import type { KeyObject } from 'node:crypto';
import type { SignerSettings } from '#config/identities.ts';
import type { SigningAlgorithm } from '../../signer.ts';

/** The settings of a key that is in no file of this host. */
export type DeviceSettings = Exclude<SignerSettings, { readonly type: 'pem' | 'development' }>;
export type SettingsOf<Type extends DeviceSettings['type']> = Extract<DeviceSettings, { readonly type: Type }>;

/** `UV_THREADPOOL_SIZE` of a signer process: a module of PKCS #11 occupies a thread for each signature that it makes. */
export const SIGNER_THREADS = 24;

/** With RSA by PKCS #1 v1.5, which requests for certificates are signed with. */
export type DeviceAlgorithm = SigningAlgorithm | 'rs256' | 'rs384' | 'rs512';

/** A private key in a token, a key service, or a server. Its errors are AppErrors, or those of a signal. */
export interface DeviceKey {
  /** The device without its credentials, as part of a sentence: `the token "news"`. */
  readonly device: string;
  readonly key: string;
  readPublicKey(signal: AbortSignal): Promise<KeyObject>;
  /** Signs in the form of COSE: ECDSA as `r ‖ s`, PSS with a salt as long as the hash. */
  sign(data: Uint8Array, algorithm: DeviceAlgorithm, signal: AbortSignal): Promise<Buffer>;
  close(): Promise<void>;
}

/** The means to open a key in a device, beside its settings. */
export interface DeviceContext {
  /** A folder that outlasts this process and is shared by all signers of a host. */
  readonly stateDir: string;
  /** The key that has to be the one of the certificate; null where there is no certificate yet. */
  readonly publicKey: KeyObject | null;
  /** Bounds an operation. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}
