import type { Log } from '#telemetry/logger.ts';
import type { IdentityDescription } from './signing-identity.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** The days before the end of an identity from which the log warns of it. */
const WARNING_DAYS = 30;

/** Short looks and not daily ones: a clock that is set, or a host that was suspended, delays no warning. */
const LOOK_INTERVAL_MS = 60_000;

const REMEDIES = {
  configured: 'Renew it, and put the new certificate and key in the place of the old ones: no restart is needed.',
  development: 'Restart the service, which then makes a new one.',
} as const satisfies Record<IdentityDescription['kind'], string>;

/**
 * Warns of the end of the identity in force, now and once for each of its last 30 days, and says once a day that it has ended.
 * Returns a function that stops this.
 */
export function watchExpiry(identity: () => IdentityDescription, log: Log): () => void {
  let told: string | null = null;
  const look = () => {
    const { kind, subject, file, notAfter } = identity();
    const daysLeft = Math.floor((Date.parse(notAfter) - Date.now()) / DAY_MS);
    const day = `${notAfter} ${daysLeft}`;
    if (daysLeft >= WARNING_DAYS || day === told) return;
    told = day;
    const fields = { subject, file, not_after: notAfter, remedy: REMEDIES[kind] };
    if (daysLeft >= 0) log.warn({ ...fields, days_left: daysLeft }, 'the signing identity ends soon');
    else log.error(fields, 'the signing identity has ended: nothing is signed until it is renewed');
  };
  look();
  const looks = setInterval(look, LOOK_INTERVAL_MS).unref();
  return () => clearInterval(looks);
}
