import { isIP } from 'node:net';
import type { Config } from '#config/config.ts';
import { AppError } from '#errors/app-error.ts';
import { DeniedNetworks } from '#inputs/http/denied-networks.ts';

/**
 * Refuses a callback of which it is certain that it will not be sent: CALLBACKS_OFF, and CALLBACK_DENIED for an address
 * that is written in numbers. What a name stands for is looked at when the callback is sent.
 */
export function admitCallback(url: string, { callbacks, input_resolvers: { http } }: Config): void {
  const location = { field: 'callback_url' };
  if (callbacks.secret === undefined) throw new AppError('CALLBACKS_OFF', {}, location);
  const { hostname } = new URL(url);
  const address = hostname.replace(/^\[(.*)\]$/, '$1');
  if (isIP(address) === 0 || !new DeniedNetworks(http.deny_networks).denies(address)) return;
  throw new AppError('CALLBACK_DENIED', { host: hostname }, location);
}
