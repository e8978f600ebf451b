import type { KeyObject } from 'node:crypto';
import { raceAbort } from '#concurrency/race-abort.ts';
import { AppError } from '#errors/app-error.ts';
import type { Signer, SigningAlgorithm } from '../../signer.ts';
import { signatureSizeBytes } from '../key-signer.ts';
import type { DeviceAlgorithm, DeviceContext, DeviceKey, DeviceSettings } from './device-key.ts';
import { isSignatureOf } from './signature-forms.ts';

/** Bounds the opening of a key, and each signature with its retries. */
const TIMEOUT_MS = 20_000;

/** The needs of a signer beside the settings of its key. */
export interface OpeningContext {
  readonly algorithm: SigningAlgorithm;
  /** The key of the leaf. */
  readonly publicKey: KeyObject;
  /** DER, leaf first, without the root. */
  readonly certificateChain: readonly Buffer[];
  /** `signerStateDir`. */
  readonly stateDir: string;
  /** For tests; 20 s by default. */
  readonly timeoutMs?: number;
}

/** A signer whose key is in a device. */
export type DeviceSigner = Required<Signer>;

/**
 * Opens a key in a device, and signs once with it. Throws an AppError: one of the class `outage` where the key may be usable
 * later. Every signature is verified with the key of the leaf before it is returned.
 */
export async function openSigner(settings: DeviceSettings, context: OpeningContext): Promise<DeviceSigner> {
  const { algorithm, publicKey, certificateChain, timeoutMs = TIMEOUT_MS } = context;
  refuseUnsupported(settings, algorithm);
  const key = await open(settings, context, timeoutMs);
  const signer: DeviceSigner = {
    algorithm,
    certificateChain,
    signatureSizeBytes: signatureSizeBytes(publicKey, algorithm),
    sign: (data) => signVerified(key, { publicKey, algorithm, timeoutMs }, data),
    close: () => key.close(),
  };
  try {
    await signer.sign(Buffer.from('attestream'));
  } catch (error) {
    await key.close();
    throw error;
  }
  return signer;
}

/** Opens a key in a device for which there need be no certificate. Throws as `openSigner` does. */
export async function withDeviceKey<T>(
  settings: DeviceSettings,
  stateDir: string,
  use: (key: {
    readonly publicKey: KeyObject;
    sign(data: Uint8Array, algorithm: DeviceAlgorithm): Promise<Buffer>;
  }) => Promise<T>,
): Promise<T> {
  const key = await open(settings, { stateDir, publicKey: null }, TIMEOUT_MS);
  try {
    const publicKey = await within(key.device, TIMEOUT_MS, (signal) => key.readPublicKey(signal));
    const sign = (data: Uint8Array, algorithm: DeviceAlgorithm) =>
      signVerified(key, { publicKey, algorithm, timeoutMs: TIMEOUT_MS }, data);
    return await use({ publicKey, sign });
  } finally {
    await key.close();
  }
}

function refuseUnsupported({ type }: DeviceSettings, algorithm: SigningAlgorithm): void {
  if (type !== 'aws_kms' || algorithm !== 'ed25519') return;
  throw new AppError('SIGNER_ALGORITHM_UNSUPPORTED', {
    algorithm,
    device: 'AWS KMS',
    remedy: 'It signs whole messages of at most 4,096 bytes, and claims may be longer. Use a key of ECC or RSA',
  });
}

function open(
  settings: DeviceSettings,
  { stateDir, publicKey }: { readonly stateDir: string; readonly publicKey: KeyObject | null },
  timeoutMs: number,
): Promise<DeviceKey> {
  return within(`the device of type ${settings.type}`, timeoutMs, (signal) =>
    openKey(settings, { stateDir, publicKey, timeoutMs, signal }),
  );
}

interface Verification {
  readonly publicKey: KeyObject;
  readonly algorithm: DeviceAlgorithm;
  readonly timeoutMs: number;
}

async function signVerified(
  key: DeviceKey,
  { publicKey, algorithm, timeoutMs }: Verification,
  data: Uint8Array,
): Promise<Buffer> {
  const signature = await within(key.device, timeoutMs, (signal) => key.sign(data, algorithm, signal));
  if (await isSignatureOf(publicKey, algorithm, data, signature)) return signature;
  throw new AppError('SIGNER_KEY_MISMATCH', { key: key.key, device: key.device });
}

/** Opens the key that settings name. Loads only the module of its kind. */
async function openKey(settings: DeviceSettings, context: DeviceContext): Promise<DeviceKey> {
  switch (settings.type) {
    case 'pkcs11':
      return (await import('./pkcs11-key.ts')).openPkcs11Key(settings, context);
    case 'http':
      return (await import('./http-key.ts')).openHttpKey(settings);
    case 'vault':
      return (await import('./vault-key.ts')).openVaultKey(settings, context);
    case 'aws_kms':
      return (await import('./aws-kms-key.ts')).openAwsKmsKey(settings);
  }
}

/** Bounds an operation of a device, also one that does not look at its signal. Throws `SIGNER_AWAY` at the end of the time. */
async function within<T>(device: string, timeoutMs: number, run: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const problem = `it did not answer within ${timeoutMs / 1000} s`;
  const timer = setTimeout(() => controller.abort(new AppError('SIGNER_AWAY', { device, problem })), timeoutMs);
  try {
    return await raceAbort(run(controller.signal), controller.signal);
  } finally {
    clearTimeout(timer);
  }
}
