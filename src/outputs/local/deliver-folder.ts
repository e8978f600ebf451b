import { rename } from 'node:fs/promises';
import { replacedNameOf } from '#bytes/staged-name.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import { refuseFile, standingAt } from '../output-error.ts';
import type { DeliveryRecords } from './delivery-records.ts';
import { type FolderLook, isAsLookedAt } from './folder-contents.ts';
import type { FolderHandle } from './folder-handle.ts';
import type { FolderTree } from './folder-tree.ts';
import { mergeFolder } from './merge-folder.ts';
import { removeEntry } from './remove-entry.ts';
import { settleReplacement } from './settle-replacement.ts';

/** Somebody else may write to the same place at the same moment; so often what is there is looked at anew. */
const MAX_TRIES = 5;

export interface Delivery {
  /** The place as the caller is told of it. */
  readonly destination: string;
  /** The folder that the destination lies in, and its name there. */
  readonly folder: FolderHandle;
  readonly name: string;
  /** A sealed folder beside the destination, on the same file system: its name, and what is in it. */
  readonly stagedName: string;
  readonly staged: FolderTree;
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
  const { destination, folder, name, records } = delivery;
  await refuseFile(destination, folder.entry(name));
  try {
    if (standingAt(folder.entry(name)) === null) return await appear(delivery);
    const own = await records.lookAtOwn(folder, name);
    return own === null ? 'foreign' : await replace(delivery, own);
  } catch (error) {
    if (RACED.has(systemErrorCode(error) ?? '')) return 'changed';
    throw error;
  }
}

async function appear({ folder, stagedName, name }: Delivery): Promise<Landing> {
  await rename(folder.entry(stagedName), folder.entry(name));
  try {
    await folder.sync();
  } catch (error) {
    await rename(folder.entry(name), folder.entry(stagedName));
    throw error;
  }
  return 'landed';
}

/** Two renames, noted before the first, so that recovery can tell what a process that was killed had begun. */
async function replace({ folder, stagedName, name, noteReplacement }: Delivery, own: FolderLook): Promise<Landing> {
  await noteReplacement();
  const replacedName = replacedNameOf(stagedName);
  try {
    await rename(folder.entry(name), folder.entry(replacedName));
    if (!(await isAsLookedAt(folder.entry(replacedName), own))) {
      await settleReplacement(folder, stagedName, name);
      return 'changed';
    }
    await rename(folder.entry(stagedName), folder.entry(name));
    await folder.sync();
  } catch (error) {
    await settleReplacement(folder, stagedName, name);
    throw error;
  }
  // The new publication is delivered: an old one that cannot be removed now is removed at the next start.
  await removeEntry(folder, replacedName).catch(() => undefined);
  return 'landed';
}
