import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { algorithmName } from '../../algorithm-name.ts';
import { hashOf } from '../key-signer.ts';
import type { DeviceAlgorithm, DeviceKey, SettingsOf } from './device-key.ts';
import { connectJsonServer, type JsonServer, readAnswer, readCredential } from './json-exchange.ts';

// The client of our own protocol (docs/signers.md).

const signatureAnswer = z.object({ signature: z.base64() });
const publicKeyAnswer = z.object({ public_key: z.string() });

export async function openHttpKey(settings: SettingsOf<'http'>): Promise<DeviceKey> {
  const { socket_path: socketPath, url: address } = settings;
  // Checked by the configuration: one of the two is there. A request to a socket needs a host all the same.
  const url = new URL(address ?? 'http://localhost/');
  const device = `the signing server at ${socketPath === undefined ? url.origin : `"${socketPath}"`}`;
  const server = await connectJsonServer({
    url,
    device,
    socketPath,
    caPath: settings.ca_path,
    certificatePath: settings.client_certificate_path,
    keyPath: settings.client_key_path,
  });
  return new HttpKey(settings, server, url, device);
}

class HttpKey implements DeviceKey {
  readonly key: string;
  readonly device: string;
  readonly #server: JsonServer;
  readonly #url: URL;
  readonly #tokenPath: string | undefined;

  constructor({ key, token_path }: SettingsOf<'http'>, server: JsonServer, url: URL, device: string) {
    this.key = key;
    this.device = device;
    this.#server = server;
    this.#url = url;
    this.#tokenPath = token_path;
  }

  async readPublicKey(signal: AbortSignal): Promise<KeyObject> {
    const answer = await this.#ask({ operation: 'public_key' }, signal);
    return readAnswer((given) => createPublicKey(publicKeyAnswer.parse(given).public_key), answer, this.device);
  }

  async sign(data: Uint8Array, algorithm: DeviceAlgorithm, signal: AbortSignal): Promise<Buffer> {
    const hashName = hashOf(algorithm);
    const message =
      hashName === null ? { data: Buffer.from(data).toString('base64') } : { digest: hash(hashName, data, 'base64') };
    const answer = await this.#ask({ operation: 'sign', algorithm: algorithmName(algorithm), ...message }, signal);
    return readAnswer((given) => Buffer.from(signatureAnswer.parse(given).signature, 'base64'), answer, this.device);
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  async #ask(fields: object, signal: AbortSignal): Promise<unknown> {
    // Read for each request, so that a renewed token is used.
    const headers =
      this.#tokenPath === undefined ? {} : { authorization: `Bearer ${await readCredential(this.#tokenPath)}` };
    const body = { ...fields, key: this.key };
    return this.#server.send({ method: 'POST', url: this.#url, headers, body, key: this.key }, signal);
  }
}
