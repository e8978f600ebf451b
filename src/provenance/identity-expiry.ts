import type { Log } from '#telemetry/logger.ts';
import type { CredentialUse } from './check-identity.ts';
import type { CredentialDescription } from './signing-identity.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** The days before the end of an identity from which the log warns of it. */
const WARNING_DAYS = 30;

/** Short looks and not daily ones: a clock that is set, or a host that was suspended, delays no warning. */
const LOOK_INTERVAL_MS = 60_000;

const REMEDIES = {
  configured: 'Renew it, and put the new certificate and key in the place of the old ones: no restart is needed.',
  development: 'Restart the service, which then makes a new one.',
} as const satisfies Record<CredentialDescription['kind'], string>;

/** A credential in force, and the identities that it is used by. */
export interface UsedCredential {
  readonly credential: CredentialDescription;
  readonly use: CredentialUse;
}

/**
 * Warns of the end of each credential in force, now and once for each of its last 30 days, and says once a day that it has ended.
 * Returns a function that stops this.
 */
export function watchExpiry(inForce: () => readonly UsedCredential[], log: Log): () => void {
  const told = new Map<string, string>();
  const look = () => {
    for (const { credential, use } of inForce()) {
      const { kind, subject, file, notAfter } = credential;
      const daysLeft = Math.floor((Date.parse(notAfter) - Date.now()) / DAY_MS);
      const day = `${notAfter} ${daysLeft}`;
      const key = `${use.role} ${use.identity}`;
      if (daysLeft >= WARNING_DAYS || day === told.get(key)) continue;
      told.set(key, day);
      const fields = { ...use, subject, file, not_after: notAfter, remedy: REMEDIES[kind] };
      if (daysLeft >= 0) log.warn({ ...fields, days_left: daysLeft }, 'the signing identity ends soon');
      else log.error(fields, 'the signing identity has ended: nothing is signed with it until it is renewed');
    }
  };
  look();
  const looks = setInterval(look, LOOK_INTERVAL_MS).unref();
  return () => clearInterval(looks);
}
