import type { Config } from '#config/config.ts';
import { DEFAULT_IDENTITY, defaultIdentityOf } from '#config/identities.ts';
import { signs } from '#contract/job.ts';
import { AppError } from '#errors/app-error.ts';
import type { Submission } from './job.ts';

type IdentityConfig = Pick<Config, 'auth' | 'signing'>;

/** Returns the names of the identities that a caller may sign with, its default first; `caller` is null where no tokens are set. */
export function usableIdentities(caller: string | null, { auth, signing }: IdentityConfig): readonly string[] {
  const own = caller !== null && Object.hasOwn(auth.callers, caller) ? auth.callers[caller]?.identities : undefined;
  return own ?? [...new Set([defaultIdentityOf({ signing }), ...Object.keys(signing.identities)])];
}

/**
 * Returns the name of the identity that the inputs of a submission sign with; null where they sign nothing. Throws
 * `IDENTITY_UNKNOWN` or `IDENTITY_FORBIDDEN`.
 */
export function settledIdentity(submission: Submission, config: IdentityConfig): string | null {
  const { operation, request, caller = null, identity: kept } = submission;
  if (!signs(operation)) return null;
  const { identity: given } = (request.params ?? {}) as { readonly identity?: string };
  const identities = usableIdentities(caller, config);
  const asked = kept ?? given ?? identities[0] ?? DEFAULT_IDENTITY;
  if (identities.includes(asked)) return asked;
  const isKnown = asked === defaultIdentityOf(config) || Object.hasOwn(config.signing.identities, asked);
  const reason = isKnown ? 'IDENTITY_FORBIDDEN' : 'IDENTITY_UNKNOWN';
  throw new AppError(reason, { identity: asked, identities }, { field: 'params.identity' });
}
