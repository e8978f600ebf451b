import { AppError } from '#errors/app-error.ts';
import type { NodeIdentities } from '../node-identities.ts';
import type { JobEngine } from '../queue/job-queue.ts';

/**
 * Throws `NO_VALID_IDENTITY` where the certificates of an identity have ended on this node, which may not have it, and on all other
 * living nodes. While no node lives that has it, jobs wait for one.
 */
export async function requireValidIdentity(
  identity: string,
  own: NodeIdentities | undefined,
  { otherIdentities = async () => [] }: Pick<JobEngine, 'otherIdentities'>,
): Promise<void> {
  const here = own?.identityOf(identity)?.notAfter;
  if (here !== undefined && isAhead(here)) return;
  const others = (await otherIdentities()).filter(({ name }) => name === identity);
  if (others.some(({ notAfter }) => notAfter === undefined || isAhead(notAfter))) return;
  const [notAfter] = [here, ...others.map((other) => other.notAfter)]
    .filter((end) => end !== undefined)
    .sort()
    .reverse();
  if (notAfter !== undefined) throw new AppError('NO_VALID_IDENTITY', { identity, notAfter });
}

function isAhead(end: string): boolean {
  return Date.parse(end) > Date.now();
}
