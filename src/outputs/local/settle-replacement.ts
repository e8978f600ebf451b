import { rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { replacedNameOf } from '#bytes/staged-name.ts';
import { standingAt } from '../output-error.ts';
import { syncFolder } from './output-folder.ts';

/** Where the publication lies that one staged at `stagedPath` replaces, until it is removed. */
export function replacedPathOf(stagedPath: string): string {
  return join(dirname(stagedPath), replacedNameOf(basename(stagedPath)));
}

/**
 * Ends a replacement that stopped at whatever point: where nothing took the old publication's place, it gets it back;
 * else it is removed. Either way one whole publication stands at the destination. Safe to do again.
 */
export async function settleReplacement(stagedPath: string, realDestination: string): Promise<void> {
  const replacedPath = replacedPathOf(stagedPath);
  if (standingAt(replacedPath) === null) return;
  if (standingAt(realDestination) === null) await rename(replacedPath, realDestination);
  else await rm(replacedPath, { force: true, recursive: true });
  await syncFolder(dirname(realDestination));
}
