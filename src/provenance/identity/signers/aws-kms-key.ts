import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import type { KMSClient, KMSServiceException, SigningAlgorithmSpec } from '@aws-sdk/client-kms';
import { AppError } from '#errors/app-error.ts';
import { problemOf, systemErrorCode } from '#errors/system-problem.ts';
import { ECDSA_SIGNATURE_SIZES_BYTES, hashOf } from '../key-signer.ts';
import type { DeviceAlgorithm, DeviceKey, SettingsOf } from './device-key.ts';
import { p1363OfDer } from './signature-forms.ts';

const CONNECT_TIMEOUT_MS = 5_000;
/** Bounds one attempt. */
const REQUEST_TIMEOUT_MS = 10_000;
/** Attempts of a request while AWS throttles, is busy, or the connection is lost. The SDK pauses between them, up to 20 s. */
const MAX_ATTEMPTS = 6;

const DEVICE = 'AWS KMS';

const FAMILIES: ReadonlyMap<string, string> = new Map(
  Object.entries({ es: 'ECDSA', ps: 'RSASSA_PSS', rs: 'RSASSA_PKCS1_V1_5' }),
);

/** The key cannot sign with the algorithm. */
const KEY_PROBLEMS: ReadonlySet<string> = new Set(['InvalidKeyUsageException', 'ValidationException']);
/** A credential was refused, or none was found. */
const ACCESS_PROBLEM =
  /^(?:AccessDenied|UnrecognizedClient|ExpiredToken|InvalidSignature|InvalidClientTokenId|IncompleteSignature|MissingAuthentication|CredentialsProvider|TokenProvider)/;

/** Opens a key of AWS KMS, with credentials of the standard chain. */
export async function openAwsKmsKey(settings: SettingsOf<'aws_kms'>): Promise<DeviceKey> {
  const { KMSClient } = await import('@aws-sdk/client-kms');
  const { region, profile, endpoint_url: endpoint } = settings;
  const client = new KMSClient({
    ...(region !== undefined && { region }),
    ...(profile !== undefined && { profile }),
    ...(endpoint !== undefined && { endpoint }),
    maxAttempts: MAX_ATTEMPTS,
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
  });
  return new AwsKmsKey(client, settings.key_id);
}

class AwsKmsKey implements DeviceKey {
  readonly device = DEVICE;
  readonly key: string;
  readonly #client: KMSClient;

  constructor(client: KMSClient, key: string) {
    this.#client = client;
    this.key = key;
  }

  async readPublicKey(abortSignal: AbortSignal): Promise<KeyObject> {
    const { GetPublicKeyCommand } = await import('@aws-sdk/client-kms');
    const command = new GetPublicKeyCommand({ KeyId: this.key });
    const { PublicKey } = await this.#explain(this.#client.send(command, { abortSignal }), abortSignal);
    return createPublicKey({ key: Buffer.from(PublicKey ?? []), format: 'der', type: 'spki' });
  }

  async sign(data: Uint8Array, algorithm: DeviceAlgorithm, abortSignal: AbortSignal): Promise<Buffer> {
    const { SignCommand } = await import('@aws-sdk/client-kms');
    const hashName = hashOf(algorithm) ?? 'sha512';
    const command = new SignCommand({
      KeyId: this.key,
      Message: hash(hashName, data, 'buffer'),
      MessageType: 'DIGEST',
      SigningAlgorithm: `${FAMILIES.get(algorithm.slice(0, 2))}_SHA_${hashName.slice(3)}` as SigningAlgorithmSpec,
    });
    const { Signature } = await this.#explain(this.#client.send(command, { abortSignal }), abortSignal);
    const signature = Buffer.from(Signature ?? []);
    const sizeBytes = ECDSA_SIGNATURE_SIZES_BYTES[algorithm];
    return sizeBytes === undefined ? signature : p1363OfDer(signature, sizeBytes);
  }

  async close(): Promise<void> {
    this.#client.destroy();
  }

  async #explain<T>(answer: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      signal.throwIfAborted();
      throw this.#problem(error as KMSServiceException);
    }
  }

  /** The messages of AWS are left out, and the error as a cause: they name accounts, roles and requests. */
  #problem(error: KMSServiceException): AppError {
    const { key } = this;
    const { name, message } = error;
    if (name === 'NotFoundException') return new AppError('SIGNER_KEY_MISSING', { key, device: DEVICE });
    if (KEY_PROBLEMS.has(name)) return new AppError('SIGNER_KEY_MISMATCH', { key, device: DEVICE });
    if (ACCESS_PROBLEM.test(name)) {
      return new AppError('SIGNER_ACCESS_REFUSED', { device: DEVICE, problem: `AWS reported ${name}` });
    }
    if (message.startsWith('Region is missing')) {
      return new AppError('SIGNER_AWAY', {
        device: DEVICE,
        problem: 'neither the signer nor the chain names a region',
      });
    }
    const problem = systemErrorCode(error) === undefined ? `AWS reported ${name}` : problemOf(error);
    return new AppError('SIGNER_AWAY', { device: DEVICE, problem });
  }
}
