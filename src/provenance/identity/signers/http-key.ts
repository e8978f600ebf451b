import { createPublicKey, hash } from 'node:crypto';
import { z } from 'zod';
import { algorithmName } from '../../algorithm-name.ts';
import { hashOf } from '../key-signer.ts';
import type { DeviceAlgorithm, DeviceKey, SettingsOf } from './device-key.ts';
import { connectJsonServer, readAnswer, readCredential } from './json-exchange.ts';

// The client of our own protocol (docs/signers.md).

const signatureAnswer = z.object({ signature: z.base64() });
const publicKeyAnswer = z.object({ public_key: z.string() });

export async function openHttpKey(settings: SettingsOf<'http'>): Promise<DeviceKey> {
  const { key, socket_path: socketPath, url: address, token_path: tokenPath } = settings;
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
  const ask = async (fields: object, signal: AbortSignal): Promise<unknown> => {
    // Read for each request, so that a renewed token is used.
    const headers = tokenPath === undefined ? {} : { authorization: `Bearer ${await readCredential(tokenPath)}` };
    return await server.send({ method: 'POST', url, headers, body: { ...fields, key }, key }, signal);
  };
  return {
    key,
    device,
    async readPublicKey(signal) {
      const answer = await ask({ operation: 'public_key' }, signal);
      return readAnswer((given) => createPublicKey(publicKeyAnswer.parse(given).public_key), answer, device);
    },
    async sign(data, algorithm, signal) {
      const answer = await ask(
        { operation: 'sign', algorithm: algorithmName(algorithm), ...messageOf(data, algorithm) },
        signal,
      );
      return readAnswer((given) => Buffer.from(signatureAnswer.parse(given).signature, 'base64'), answer, device);
    },
    close: () => server.close(),
  };
}

/** Returns what is signed: the digest, or all of it where the algorithm hashes by itself. */
function messageOf(data: Uint8Array, algorithm: DeviceAlgorithm): object {
  const hashName = hashOf(algorithm);
  if (hashName === null) return { data: Buffer.from(data).toString('base64') };
  return { digest: hash(hashName, data, 'base64') };
}
