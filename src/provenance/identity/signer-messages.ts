import type { Config } from '#config/config.ts';
import type { AppErrorData } from '#errors/app-error.ts';
import type { IdentityDescription } from './signing-identity.ts';

/** What the signer process loads. It is the only one that gets the passphrase. */
export interface SignerOrder {
  readonly signing: Config['signing'];
  readonly dataDir: string;
  /** Channels of clients that it inherits: the file descriptors from `FIRST_CHANNEL` on. */
  readonly channelCount: number;
  /** The certificates that it must sign for: those of the signer before it; null for the first. */
  readonly expected: readonly string[] | null;
}

/** The first channel that a process inherits, as the number of its file descriptor: the channel of messages is 3. */
export const FIRST_CHANNEL = 4;

/** A message to the signer process. A `client` comes with its channel. */
export type ToSigner =
  | { readonly type: 'start'; readonly order: SignerOrder }
  | { readonly type: 'client' }
  | { readonly type: 'ping' };

/** A message of the signer process. */
export type FromSigner =
  | { readonly type: 'ready'; readonly identity: IdentityDescription }
  | { readonly type: 'failed'; readonly error: AppErrorData }
  | { readonly type: 'pong' };
