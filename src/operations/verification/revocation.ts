import type { ValidationCode, Verification, VerifiedManifest } from '#contract/verification.ts';
import { manifestIn } from '#provenance/manifest-store.ts';
import { type StapledStatus, stapledStatusOf } from '#provenance/stapled-status.ts';
import { explanationOf } from '#provenance/status-codes.ts';
import type { TrustLists } from '#provenance/trust-lists.ts';

/**
 * Adds what the signatures of manifest stores carry about the revocation of their certificates, of which the readers judge a part, and
 * only with trust anchors. A certificate that was revoked before it signed makes the verification invalid.
 */
export function withRevocation(
  verification: Verification,
  stores: readonly Uint8Array[],
  lists: TrustLists,
): Verification {
  const { state, codes, manifests } = verification;
  const [active, ...others] = manifests;
  if (active === undefined || stores.length === 0 || (state !== 'valid' && state !== 'trusted')) return verification;
  const found = statusOf(active, stores, lists);
  const code = codeOf(found.status);
  const isKnown = code === null || codes.some((known) => known.code === code.code && known.ingredient !== true);
  return {
    ...verification,
    ...(found.status === 'revoked' && { state: 'invalid' }),
    codes: isKnown ? codes : code.kind === 'failure' ? [code, ...codes] : [...codes, code],
    manifests: [{ ...active, revocation: describe(found) }, ...others],
  };
}

/** Returns the status of the manifest that is described, or that of another one whose certificate is revoked. */
function statusOf(active: VerifiedManifest, stores: readonly Uint8Array[], lists: TrustLists): StapledStatus {
  const { time, trusted = false } = active.time_stamp ?? {};
  const own = stores.find((store) => manifestIn(store)?.label === active.label);
  const statuses = stores.map((store) => ({
    store,
    // Only the time of the manifest that is described is known here.
    status: stapledStatusOf(store, lists, store === own && trusted && time !== undefined ? new Date(time) : null),
  }));
  const shown =
    statuses.find(({ status }) => status.status === 'revoked') ?? statuses.find(({ store }) => store === own);
  return shown?.status ?? { status: 'none', problem: null };
}

const CODES = {
  good: { code: 'signingCredential.ocsp.notRevoked', kind: 'success' },
  revoked: { code: 'signingCredential.ocsp.revoked', kind: 'failure' },
  unknown: { code: 'signingCredential.ocsp.unknown', kind: 'informational' },
} as const;

function codeOf(status: StapledStatus['status']): ValidationCode | null {
  if (status === 'none') return null;
  const { code, kind } = CODES[status];
  return { code, kind, explanation: explanationOf(code) ?? code, count: 1 };
}

function describe(found: StapledStatus): NonNullable<VerifiedManifest['revocation']> {
  const { status } = found;
  switch (status) {
    case 'revoked':
      return { status, revoked_at: found.revokedAt.toISOString() };
    case 'none':
      return { status, ...(found.problem !== null && { problem: found.problem }) };
    default:
      return { status, as_of: found.thisUpdate.toISOString() };
  }
}
