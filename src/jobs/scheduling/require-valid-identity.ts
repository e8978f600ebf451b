import { AppError } from '#errors/app-error.ts';
import type { IdentityDescription } from '#provenance/signing-identity.ts';
import type { JobEngine } from '../queue/job-queue.ts';

/**
 * Throws `NO_VALID_IDENTITY` where the identities of this node, which may have none, and of all other living nodes have ended. While
 * no node lives that signs, jobs wait for one.
 */
export async function requireValidIdentity(
  own: Pick<IdentityDescription, 'notAfter'> | undefined,
  { otherIdentityEnds = async () => [] }: Pick<JobEngine, 'otherIdentityEnds'>,
): Promise<void> {
  if (own !== undefined && isAhead(own.notAfter)) return;
  const others = await otherIdentityEnds();
  if (others.some(isAhead)) return;
  const [notAfter] = [own?.notAfter, ...others]
    .filter((end) => typeof end === 'string')
    .sort()
    .reverse();
  if (notAfter !== undefined) throw new AppError('NO_VALID_IDENTITY', { notAfter });
}

function isAhead(end: string | null): boolean {
  return end === null || Date.parse(end) > Date.now();
}
