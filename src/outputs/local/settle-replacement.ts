import { rename } from 'node:fs/promises';
import { replacedNameOf } from '#bytes/staged-name.ts';
import { standingAt } from '../output-error.ts';
import type { FolderHandle } from './folder-handle.ts';
import { removeEntry } from './remove-entry.ts';

/**
 * Ends a replacement that stopped at whatever point: where nothing took the old publication's place, it gets it back;
 * else it is removed. Either way one whole publication stands under the name. Safe to do again.
 */
export async function settleReplacement(folder: FolderHandle, stagedName: string, name: string): Promise<void> {
  const replacedName = replacedNameOf(stagedName);
  if (standingAt(folder.entry(replacedName)) === null) return;
  if (standingAt(folder.entry(name)) === null) await rename(folder.entry(replacedName), folder.entry(name));
  else await removeEntry(folder, replacedName);
  await folder.sync();
}
