import { z } from 'zod';
import { readCredential } from './credential-file.ts';
import type { SettingsOf } from './device-key.ts';
import { readAnswer } from './json-exchange.ts';

/** The share of a token's life after which another one is asked for. */
const RENEWAL_SHARE = 0.8;

const loginAnswer = z.object({ auth: z.object({ client_token: z.string(), lease_duration: z.number() }) });

/** Sends the body of a login with an AppRole, and returns the answer. */
type LogIn = (body: object, signal: AbortSignal) => Promise<unknown>;

/** The token of requests to Vault: the one in a file as it is now, or one of an AppRole for as long as it is valid. */
export class VaultToken {
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
