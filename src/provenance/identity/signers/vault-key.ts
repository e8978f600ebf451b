import { createPublicKey, hash, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import { AppError } from '#errors/app-error.ts';
import { hashOf } from '../key-signer.ts';
import type { DeviceAlgorithm, DeviceContext, DeviceKey, SettingsOf } from './device-key.ts';
import { connectJsonServer, type JsonRequest, type JsonServer, readAnswer, readCredential } from './json-exchange.ts';

// A key of the transit engine, which OpenBao has, too: https://developer.hashicorp.com/vault/api-docs/secret/transit

const keyAnswer = z.object({
  data: z.object({ latest_version: z.int(), keys: z.record(z.string(), z.object({ public_key: z.string() })) }),
});
const signatureAnswer = z.object({
  data: z.object({ signature: z.templateLiteral(['vault:v', z.int(), ':', z.string()]) }),
});

/**
 * Opens a key. Rejects with `SIGNER_KEY_MISMATCH` where no version of it is the one of the certificate: a rotated key signs with the
 * version that was certified until the certificate is replaced.
 */
export async function openVaultKey(
  settings: SettingsOf<'vault'>,
  { publicKey, signal }: DeviceContext,
): Promise<DeviceKey> {
  const url = new URL(settings.url);
  const device = `Vault at ${url.origin}`;
  const server = await connectJsonServer({ url, device, caPath: settings.ca_path });
  const key = new VaultKey(settings, server, url, device);
  try {
    if (publicKey !== null) await key.choose(publicKey, signal);
    return key;
  } catch (error) {
    await key.close();
    throw error;
  }
}

class VaultKey implements DeviceKey {
  readonly key: string;
  readonly device: string;
  readonly #mount: string;
  readonly #server: JsonServer;
  readonly #url: URL;
  readonly #namespace: Readonly<Record<string, string>>;
  readonly #token: VaultToken;
  /** Undefined: the newest. */
  #version: number | undefined;

  constructor(settings: SettingsOf<'vault'>, server: JsonServer, url: URL, device: string) {
    const { key, mount, namespace } = settings;
    this.key = key;
    this.device = device;
    this.#mount = mount;
    this.#server = server;
    this.#url = url;
    this.#namespace = namespace === undefined ? {} : { 'x-vault-namespace': namespace };
    this.#token = new VaultToken(settings, (body, signal) => this.#logIn(body, signal), device);
  }

  async readPublicKey(signal: AbortSignal): Promise<KeyObject> {
    const { latest_version: version, keys } = await this.#read(signal);
    return readAnswer(() => publicKeyOf(keys[version]?.public_key ?? ''), keys, this.device);
  }

  /** Signs with the version of a public key from now on. Throws `SIGNER_KEY_MISMATCH` where there is none. */
  async choose(publicKey: KeyObject, signal: AbortSignal): Promise<void> {
    const { keys } = await this.#read(signal);
    const isChosen = ([, given]: readonly [string, { readonly public_key: string }]) =>
      readAnswer(() => publicKeyOf(given.public_key), given, this.device).equals(publicKey);
    const chosen = Object.entries(keys).find(isChosen);
    if (chosen === undefined) throw new AppError('SIGNER_KEY_MISMATCH', { key: this.key, device: this.device });
    this.#version = Number(chosen[0]);
  }

  async sign(data: Uint8Array, algorithm: DeviceAlgorithm, signal: AbortSignal): Promise<Buffer> {
    const hashName = hashOf(algorithm);
    const input = hashName === null ? Buffer.from(data).toString('base64') : hash(hashName, data, 'base64');
    const body = { input, ...(this.#version && { key_version: this.#version }), ...signingOptions(algorithm) };
    const path = `sign/${encodeURIComponent(this.key)}${hashName === null ? '' : `/sha2-${hashName.slice(3)}`}`;
    const answer = await this.#ask({ method: 'POST', body }, path, signal);
    const { signature } = readAnswer((given) => signatureAnswer.parse(given), answer, this.device).data;
    // Buffer takes both alphabets of base64; with `jws` it is that of URLs.
    return Buffer.from(signature.slice(signature.lastIndexOf(':') + 1), 'base64');
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  async #read(signal: AbortSignal) {
    const answer = await this.#ask({ method: 'GET' }, `keys/${encodeURIComponent(this.key)}`, signal);
    return readAnswer((given) => keyAnswer.parse(given), answer, this.device).data;
  }

  /** Sends a request of the engine, once more with another token where the token has ended. */
  async #ask(request: Pick<JsonRequest, 'method' | 'body'>, path: string, signal: AbortSignal): Promise<unknown> {
    const send = (token: string) => this.#send(request, `${this.#mount}/${path}`, { 'x-vault-token': token }, signal);
    const token = await this.#token.get(signal);
    try {
      return await send(token);
    } catch (error) {
      if (!(error instanceof AppError) || error.reason !== 'SIGNER_ACCESS_REFUSED') throw error;
      this.#token.drop(token);
      const renewed = await this.#token.get(signal);
      if (renewed === token) throw error;
      return send(renewed);
    }
  }

  #logIn(body: object, signal: AbortSignal): Promise<unknown> {
    return this.#send({ method: 'POST', body, isLogin: true }, 'auth/approle/login', {}, signal);
  }

  #send(
    request: Pick<JsonRequest, 'method' | 'body' | 'isLogin'>,
    path: string,
    headers: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<unknown> {
    // An address may have a path in front, such as that of a proxy.
    const url = new URL(`${this.#url.pathname.replace(/\/$/, '')}/v1/${path}`, this.#url);
    return this.#server.send({ ...request, url, headers: { ...this.#namespace, ...headers }, key: this.key }, signal);
  }
}

function signingOptions(algorithm: DeviceAlgorithm): object {
  if (algorithm === 'ed25519') return {};
  if (algorithm.startsWith('es')) return { prehashed: true, marshaling_algorithm: 'jws' };
  if (algorithm.startsWith('rs')) return { prehashed: true, signature_algorithm: 'pkcs1v15' };
  return { prehashed: true, signature_algorithm: 'pss', salt_length: 'hash' };
}

/** Vault gives PEM, and of Ed25519 the 32 bytes alone. */
function publicKeyOf(text: string): KeyObject {
  if (text.startsWith('-----')) return createPublicKey(text);
  const x = Buffer.from(text, 'base64').toString('base64url');
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
}

/** The share of a token's life after which another one is asked for. */
const RENEWAL_SHARE = 0.8;

const loginAnswer = z.object({ auth: z.object({ client_token: z.string(), lease_duration: z.number() }) });

/** Sends the body of a login with an AppRole, and returns the answer. */
type LogIn = (body: object, signal: AbortSignal) => Promise<unknown>;

/** The token of requests to Vault: the one in a file as it is now, or one of an AppRole for as long as it is valid. */
class VaultToken {
  readonly #settings: SettingsOf<'vault'>;
  readonly #logIn: LogIn;
  readonly #device: string;
  /** The newest login, which concurrent requests share; null where another one is needed. */
  #login: Promise<string> | null = null;
  /** The token that it gave; empty before. */
  #current = '';
  #untilMs = 0;

  constructor(settings: SettingsOf<'vault'>, logIn: LogIn, device: string) {
    this.#settings = settings;
    this.#logIn = logIn;
    this.#device = device;
  }

  get(signal: AbortSignal): Promise<string> {
    const { token_path: file } = this.#settings;
    if (file !== undefined) return readCredential(file);
    if (this.#login === null || Date.now() >= this.#untilMs) this.#login = this.#renew(signal);
    return this.#login;
  }

  /** Takes a token for ended, so that the next request logs in again. */
  drop(token: string): void {
    if (token === this.#current) this.#untilMs = 0;
  }

  async #renew(signal: AbortSignal): Promise<string> {
    const { role_id_path: roleFile = '', secret_id_path: secretFile } = this.#settings;
    this.#untilMs = Infinity;
    this.#current = '';
    try {
      const secret = secretFile === undefined ? {} : { secret_id: await readCredential(secretFile) };
      const answer = await this.#logIn({ role_id: await readCredential(roleFile), ...secret }, signal);
      const { auth } = readAnswer((given) => loginAnswer.parse(given), answer, this.#device);
      // Tokens without an end have a lease of 0.
      if (auth.lease_duration > 0) this.#untilMs = Date.now() + auth.lease_duration * 1000 * RENEWAL_SHARE;
      this.#current = auth.client_token;
      return this.#current;
    } catch (error) {
      this.#untilMs = 0;
      throw error;
    }
  }
}
