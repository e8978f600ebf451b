import { type StagingKey, stagedNameOf } from '#bytes/staged-name.ts';
import type { FolderHandle } from './folder-handle.ts';
import { removeEntry } from './remove-entry.ts';
import { settleReplacement } from './settle-replacement.ts';

/** So many attempts are looked back; an input that is started more often leaves its first ones to whoever made them. */
const MOST_ATTEMPTS = 32;

interface Earlier {
  /** The place as the caller is told of it, and as its folder and name there. */
  readonly destination: string;
  readonly folder: FolderHandle;
  readonly name: string;
  readonly secret: Buffer;
}

/**
 * Removes what earlier attempts at an input staged for its destination, and ends what they had begun to replace. Their
 * node may be lost for good, with the journal that says so; they themselves may deliver no more, since a later one began.
 */
export async function clearEarlierAttempts(
  { destination, folder, name, secret }: Earlier,
  key: StagingKey,
): Promise<void> {
  for (let attempt = Math.max(1, key.attempt - MOST_ATTEMPTS); attempt < key.attempt; attempt += 1) {
    const stagedName = stagedNameOf(destination, { ...key, attempt }, secret);
    await settleReplacement(folder, stagedName, name);
    await removeEntry(folder, stagedName);
  }
}
