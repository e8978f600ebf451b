import { AppError } from '#errors/app-error.ts';
import type { TimeStampSettings } from './authoring/time-stamps.ts';
import { signAndJudge } from './check-identity.ts';
import type { Signers } from './signers.ts';

/**
 * Signs a small manifest with an identity, by its name, with a time-stamp where settings are given, and something with its publisher's
 * key. Resolves with null where that works, else with the problem.
 */
export async function probeSigning(
  signers: Signers,
  name: string,
  timeStamps: TimeStampSettings | null = null,
): Promise<string | null> {
  const identity = signers.identityOf(name);
  if (identity === null) return signers.away.get(name)?.message ?? `There is no identity "${name}".`;
  try {
    const [found] = await signAndJudge({ identity, timeStamps }, signers.launcher, (process, channelOf) =>
      signers.attach(process, channelOf, [identity]).allow(name),
    );
    return found?.problem ?? null;
  } catch (error) {
    if (error instanceof AppError) return error.message;
    throw error;
  }
}
