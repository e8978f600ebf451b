import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import { settleReplacement } from './settle-replacement.ts';

/** So many attempts are looked back; an input that is started more often leaves its first ones to whoever made them. */
const MOST_ATTEMPTS = 32;

/**
 * Removes what earlier attempts at an input staged for its destination, and ends what they had begun to replace. Their
 * node may be lost for good, with the journal that says so; they themselves may deliver no more, since a later one began.
 */
export async function clearEarlierAttempts(
  { destination, realDestination }: { readonly destination: string; readonly realDestination: string },
  key: StagingKey,
): Promise<void> {
  for (let attempt = Math.max(1, key.attempt - MOST_ATTEMPTS); attempt < key.attempt; attempt += 1) {
    const stagedPath = join(dirname(realDestination), stagedNameOf(destination, { ...key, attempt }));
    await settleReplacement(stagedPath, realDestination);
    await rm(stagedPath, { force: true, recursive: true });
  }
}
