import { readdir, rmdir, unlink } from 'node:fs/promises';
import { sideBySide } from '#bytes/side-by-side.ts';
import { systemErrorCode } from '#errors/system-problem.ts';
import type { FolderHandle } from './folder-handle.ts';

/** Entries of one folder that are removed at once. */
const REMOVALS_AT_ONCE = 16;

/** What removing a file fails with where a folder stands there: Linux, and others. */
const IS_FOLDER = ['EISDIR', 'EPERM'];

/**
 * Removes a file, a link, or a folder with everything in it; nothing where there is none. As `rm -r`, but a folder that
 * becomes a link meanwhile is not followed.
 */
export async function removeEntry(folder: FolderHandle, name: string): Promise<void> {
  try {
    await unlink(folder.entry(name));
  } catch (error) {
    const code = systemErrorCode(error) ?? '';
    if (code === 'ENOENT') return;
    if (!IS_FOLDER.includes(code)) throw error;
    await removeFolder(folder, name, error);
  }
}

async function removeFolder(above: FolderHandle, name: string, cause: unknown): Promise<void> {
  const folder = openFolder(above, name, cause);
  if (folder === null) return;
  try {
    const entries = await readdir(folder.self, { withFileTypes: true });
    const folders = entries.filter((entry) => entry.isDirectory());
    const others = entries.filter((entry) => !entry.isDirectory());
    await sideBySide(others, REMOVALS_AT_ONCE, (entry) => removeEntry(folder, entry.name));
    // One after another: each is open while it is emptied.
    for (const { name: inner } of folders) await removeEntry(folder, inner);
  } finally {
    await folder.close();
  }
  await rmdir(above.entry(name));
}

/** Null where it is gone; `cause`, why it could not be removed as a file, is the error where it is no folder. */
function openFolder(above: FolderHandle, name: string, cause: unknown): FolderHandle | null {
  try {
    return above.enter(name);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'ENOENT') return null;
    throw code === 'ENOTDIR' || code === 'ELOOP' ? cause : error;
  }
}
