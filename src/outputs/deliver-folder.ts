import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';
import type { DeliveryRecords } from './delivery-records.ts';
import { type FolderLook, isAsLookedAt } from './folder-contents.ts';
import { mergeFolder } from './merge-folder.ts';
import { refuseFile, standingAt } from './output-error.ts';
import { syncFolder } from './output-folder.ts';
import { replacedPathOf, settleReplacement } from './settle-replacement.ts';

/** Somebody else may write to the same place at the same moment; so often what is there is looked at anew. */
const MAX_TRIES = 5;

export interface Delivery {
  /** The place as the caller is told of it. */
  readonly destination: string;
  readonly realDestination: string;
  /** A sealed folder beside the destination, on the same file system. */
  readonly stagedPath: string;
  /** Every file of the staged folder, relative to it. */
  readonly paths: readonly string[];
  readonly records: DeliveryRecords;
  readonly noteReplacement: () => Promise<void>;
}

/**
 * Brings a staged folder to its destination, durably. What a reader sees meanwhile depends on what stands there:
 * - nothing, or an empty folder: the publication appears whole, in one rename;
 * - a publication that this service delivered: for the moment between two renames there is nothing, before it the old
 *   publication whole, after it the new one whole. A reader who has files open keeps reading the old ones;
 * - a folder with anything else in it: new files appear beside old ones, each whole, playlists last, so that a player that
 *   reads a playlist finds what it names. After a failure midway, or a kill, files of both publications may be there until
 *   the delivery is done again; nothing foreign is touched.
 */
export async function deliverFolder(delivery: Delivery): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    if (await tryDelivery(delivery, tries < MAX_TRIES)) return;
  }
}

/** False where what stood at the destination changed on the way and `mayRetry`; nothing has happened then. */
async function tryDelivery(delivery: Delivery, mayRetry: boolean): Promise<boolean> {
  const { destination, realDestination, records } = delivery;
  await refuseFile(destination, realDestination);
  const standing = await standingAt(realDestination);
  try {
    if (standing === null) return await appear(delivery);
    const own = await records.lookAtOwn(realDestination);
    if (own !== null) return await replace(delivery, own);
  } catch (error) {
    if (mayRetry && ['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemErrorCode(error) ?? '')) return false;
    throw error;
  }
  await mergeFolder(delivery);
  return true;
}

async function appear({ stagedPath, realDestination }: Delivery): Promise<true> {
  await rename(stagedPath, realDestination);
  try {
    await syncFolder(dirname(realDestination));
  } catch (error) {
    await rename(realDestination, stagedPath);
    throw error;
  }
  return true;
}

/** Two renames, noted before the first, so that recovery can tell what a process that was killed had begun. */
async function replace({ stagedPath, realDestination, noteReplacement }: Delivery, own: FolderLook): Promise<boolean> {
  await noteReplacement();
  const replacedPath = replacedPathOf(stagedPath);
  try {
    await rename(realDestination, replacedPath);
    if (!(await isAsLookedAt(replacedPath, own))) {
      await settleReplacement(stagedPath, realDestination);
      return false;
    }
    await rename(stagedPath, realDestination);
    await syncFolder(dirname(realDestination));
  } catch (error) {
    await settleReplacement(stagedPath, realDestination);
    throw error;
  }
  // The new publication is delivered: an old one that cannot be removed now is removed at the next start.
  await rm(replacedPath, { force: true, recursive: true }).catch(() => undefined);
  return true;
}
