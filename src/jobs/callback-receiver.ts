import { isIP } from 'node:net';
import type { Agent } from 'undici';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { DeniedNetworks } from '#inputs/denied-networks.ts';
import { createGuardedAgent, exchange } from '#inputs/guarded-request.ts';

/** Bound on the time during which a receiver sends nothing. */
const IDLE_TIMEOUT_MS = 10_000;

/** A signed callback. */
export interface CallbackMessage {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Posts a message and resolves with the status of the response, whatever it is. Redirects are not followed. Throws
 * `HTTP_ADDRESS_DENIED` for a receiver in a denied network, the signal's reason, or the error of the connection.
 */
export type Post = (url: string, message: CallbackMessage, signal: AbortSignal) => Promise<number>;

/**
 * Returns a function that posts callbacks under the address rules of HTTP inputs. It reads only the status of a response.
 * The connection pool is opened with the first callback.
 */
export function guardedPost(denied: DeniedNetworks): Post {
  let agent: Promise<Agent> | undefined;
  return async (url, { headers, body }, signal) => {
    agent ??= createGuardedAgent({ denied });
    const request = { method: 'POST', url: new URL(url), headers, body, idleTimeoutMs: IDLE_TIMEOUT_MS } as const;
    const answer = await exchange(await agent, request, signal);
    answer.body.cancel();
    return answer.status;
  };
}

/**
 * Refuses a callback that could never be sent. Throws `CALLBACKS_OFF` when no secret is configured, and `CALLBACK_DENIED`
 * when the host is an IP address in a denied network. A host name is resolved and checked when the callback is sent.
 */
export function admitCallback(url: string, { callbacks, input_resolvers: { http } }: Config): void {
  const location = { field: 'callback_url' };
  if (callbacks.secret === undefined) throw new AppError('CALLBACKS_OFF', {}, location);
  const { hostname } = new URL(url);
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) === 0 || !new DeniedNetworks(http.deny_networks).denies(address)) return;
  throw new AppError('CALLBACK_DENIED', { host: hostname }, location);
}
