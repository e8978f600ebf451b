import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemErrorCode } from '#errors/system-problem.ts';
import { refuseFile, standingAt } from '../output-error.ts';
import type { DeliveryRecords } from './delivery-records.ts';
import { type FolderLook, isAsLookedAt } from './folder-contents.ts';
import { mergeFolder } from './merge-folder.ts';
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
  for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
    const landing = await landWhole(delivery);
    if (landing === 'landed') return;
    if (landing === 'foreign') break;
  }
  await mergeFolder(delivery);
}

/** `foreign` and `changed` (while it was tried): nothing has happened. */
type Landing = 'landed' | 'foreign' | 'changed';

/** What renaming a folder fails with where somebody else has just put something there, or taken it away. */
const RACED = new Set(['ENOENT', 'ENOTEMPTY', 'EEXIST', 'ENOTDIR']);

/** Puts the folder in the place of nothing, or of a publication that is to go as a whole. */
async function landWhole(delivery: Delivery): Promise<Landing> {
  const { destination, realDestination, records } = delivery;
  await refuseFile(destination, realDestination);
  try {
    if (standingAt(realDestination) === null) return await appear(delivery);
    const own = await records.lookAtOwn(realDestination);
    return own === null ? 'foreign' : await replace(delivery, own);
  } catch (error) {
    if (RACED.has(systemErrorCode(error) ?? '')) return 'changed';
    throw error;
  }
}

async function appear({ stagedPath, realDestination }: Delivery): Promise<Landing> {
  await rename(stagedPath, realDestination);
  try {
    await syncFolder(dirname(realDestination));
  } catch (error) {
    await rename(realDestination, stagedPath);
    throw error;
  }
  return 'landed';
}

/** Two renames, noted before the first, so that recovery can tell what a process that was killed had begun. */
async function replace({ stagedPath, realDestination, noteReplacement }: Delivery, own: FolderLook): Promise<Landing> {
  await noteReplacement();
  const replacedPath = replacedPathOf(stagedPath);
  try {
    await rename(realDestination, replacedPath);
    if (!(await isAsLookedAt(replacedPath, own))) {
      await settleReplacement(stagedPath, realDestination);
      return 'changed';
    }
    await rename(stagedPath, realDestination);
    await syncFolder(dirname(realDestination));
  } catch (error) {
    await settleReplacement(stagedPath, realDestination);
    throw error;
  }
  // The new publication is delivered: an old one that cannot be removed now is removed at the next start.
  await rm(replacedPath, { force: true, recursive: true }).catch(() => undefined);
  return 'landed';
}
