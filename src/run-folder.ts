import { randomUUID } from 'node:crypto';
import { renameSync, statSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { homedir, tmpdir, userInfo } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { AppError } from '#errors/app-error.ts';
import { holdDataFolder } from '#jobs/data-folder.ts';
import { recoverStagings } from '#outputs/staging-journal.ts';
import type { Log } from '#telemetry/logger.ts';
import { problemOfFolder } from './service-folders.ts';

const PREFIX = 'run-';

/** The data folder of one command, which no other process uses. */
export interface RunFolder {
  readonly path: string;
  /** Removes the folder. */
  remove(): Promise<void>;
}

/** Returns a folder of the XDG base directory specification, by its variable or the default below the home folder. */
export function xdgFolder(variable: 'XDG_STATE_HOME' | 'XDG_DATA_HOME', below: string): string {
  const given = process.env[variable];
  // Relative paths are to be ignored, the specification says.
  const base = given !== undefined && isAbsolute(given) ? given : join(homedir(), below);
  return join(base, 'attestream');
}

/**
 * Makes the data folder of a command and locks it, and removes what commands left that were killed. Throws
 * `STORE_FOLDER_UNUSABLE`.
 */
export async function openRunFolder(log: Log): Promise<RunFolder> {
  const parent = stateFolder();
  const id = randomUUID();
  // Renamed once it is locked, so that no other command takes it for that of a killed one.
  const made = join(parent, `.${id}`);
  const unlock = await holdDataFolder(made);
  const path = join(parent, PREFIX + id);
  renameSync(made, path);
  const cleared = clearLeftFolders(parent, path, log);
  return {
    path,
    remove: async () => {
      await cleared;
      await rm(path, { recursive: true, force: true });
      unlock();
    },
  };
}

/** Removes the folders of commands that were killed, and what they had staged. Leaves those that run alone. */
async function clearLeftFolders(parent: string, own: string, log: Log): Promise<void> {
  for (const name of await readdir(parent)) {
    const path = join(parent, name);
    if (!name.startsWith(PREFIX) || path === own) continue;
    try {
      const unlock = await holdDataFolder(path);
      await recoverStagings(path);
      await rm(path, { recursive: true, force: true });
      unlock();
    } catch (err) {
      if (err instanceof AppError && err.reason === 'STORE_IN_USE') continue;
      log.warn({ folder: path, err }, 'what a killed command left could not be removed');
    }
  }
}

/** Returns the folder of the data folders: that of the user's state, else one below the system's temporary folder. */
function stateFolder(): string {
  const own = xdgFolder('XDG_STATE_HOME', '.local/state');
  if (isPrivateFolder(own)) return own;
  const temporary = join(tmpdir(), `attestream-${userInfo().uid}`);
  if (isPrivateFolder(temporary)) return temporary;
  const problem = 'it cannot be made, or others can write it. Set XDG_STATE_HOME to a folder of your own';
  throw new AppError('STORE_FOLDER_UNUSABLE', { folder: temporary, problem });
}

/** Makes a folder where it is missing. Returns false unless it is this user's, and no other can write it. */
function isPrivateFolder(path: string): boolean {
  if (problemOfFolder(path, 0o700) !== null) return false;
  const { uid, mode } = statSync(path);
  return uid === process.geteuid?.() && (mode & 0o022) === 0;
}
