import { createHmac } from 'node:crypto';

/**
 * The signature of a callback: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. The time is signed too, so that a
 * receiver can refuse what was recorded and sent again.
 */
export function signCallback(body: string, secret: string, atMs: number): string {
  const seconds = Math.floor(atMs / 1000);
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}
